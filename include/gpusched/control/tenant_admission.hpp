// SPDX-License-Identifier: Apache-2.0
// Admission of tenants to a host: where a new one may be placed without harm to those that are there, and who waits meanwhile.
#pragma once

#include <gpusched/control/step.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpusched::control {

/// A tenant that wants to come, with what it declares of itself.
struct Newcomer {
    std::int64_t id = 0;             ///< the caller's
    std::int32_t service_class = 0;  ///< lower ones are asked first
    std::string profile = "1g";      ///< key of the instance it needs
    double pcie_bytes_per_s = 0;     ///< when busy; finite, not negative
    double io_bytes_per_s = 0;       ///< the same, of block I/O
    double tau_ms = 0;               ///< target of its p99; 0 for none
    double alone_ms = 0;  ///< with a target, above 0: its p99 in such an instance with an idle root
};
template <class F>
constexpr void visit_fields(std::type_identity<Newcomer>, F&& field) {
    field("id", &Newcomer::id);
    field("service_class", &Newcomer::service_class);
    field("profile", &Newcomer::profile);
    field("pcie_bytes_per_s", &Newcomer::pcie_bytes_per_s, within(0.0, 1e15));
    field("io_bytes_per_s", &Newcomer::io_bytes_per_s, within(0.0, 1e15));
    field("tau_ms", &Newcomer::tau_ms, within(0.0, 1e7));
    field("alone_ms", &Newcomer::alone_ms, within(0.0, 1e7));
}

/// A place for a newcomer.
struct AdmissionPlace {
    std::int32_t gpu = 0;
    MigInstance instance{};
    double score = 0;        ///< the scorer's; lower is better
    double worst_ratio = 0;  ///< the highest predicted p99 / target, of protected tenants and of the newcomer
};

/// See `find_place`.
[[nodiscard]] std::optional<AdmissionPlace> find_place_with(const ControllerState& state,
                                                            const Observation& seen,
                                                            const ControllerOptions& options,
                                                            const Newcomer& newcomer, ScoreRef score);

/// The free placement of the least score at which every predicted p99 stays at or below its target; ties go to the
/// lowest (GPU, start). Nothing where there is none, while admission is closed, or before every protected tenant's tail
/// was seen.
///
/// The tails of protected tenants are predicted by what was learnt of each (`TailModel`) with the newcomer's traffic and
/// block I/O added, the newcomer's own by what is assumed of any tenant. No instance that exists is touched, and GPUs
/// that are lost, unreadable or being changed are left out.
/// @param seen the window that `state` was last stepped with
/// @throws InvalidInput when a number of the newcomer is out of range, or no GPU has such a profile
/// Complexity: O(GPUs x starts x (tenants + cores)).
template <PlacementScorer S = WeightedScore>
[[nodiscard]] std::optional<AdmissionPlace> find_place(const ControllerState& state, const Observation& seen,
                                                       const ControllerOptions& options,
                                                       const Newcomer& newcomer, const S& score = {}) {
    return find_place_with(state, seen, options, newcomer, score);
}

/// What became of a newcomer.
enum class AdmissionVerdict : std::uint8_t { admitted, queued, rejected };
constexpr auto enum_names(AdmissionVerdict) {
    return name_table<AdmissionVerdict>({
        {AdmissionVerdict::admitted, "admitted"},
        {AdmissionVerdict::queued, "queued"},
        {AdmissionVerdict::rejected, "rejected"},
    });
}

/// What became of a newcomer, and where it is to go.
struct AdmissionAnswer {
    AdmissionVerdict verdict = AdmissionVerdict::queued;
    Newcomer newcomer{};
    std::optional<AdmissionPlace> place{};  ///< where it is to go; absent unless it is admitted
};

/// Newcomers for whom there is no place yet: first come, first served within a class, and never more than a number of
/// each class. At most one is admitted in a window: what it takes and does is seen in the next. Tenants that run are never
/// asked to leave.
class AdmissionQueue {
  public:
    /// @param capacity waiting newcomers of each class, 0 to 100,000; with 0 who cannot be placed at once is rejected
    /// @throws InvalidInput when out of range
    explicit AdmissionQueue(std::size_t capacity = 16);

    /// A newcomer arrives: admitted where nobody of its class or a lower one waits, nobody was admitted in this window, and
    /// there is a place, else queued, or rejected where its class is full or it could not meet its own target on an idle
    /// root. Whoever is admitted must be created before the next window, so that the layouts seen are those that are.
    /// @throws InvalidInput as `find_place`; the queue is unchanged
    AdmissionAnswer offer(const ControllerState& state, const Observation& seen,
                          const ControllerOptions& options, Newcomer newcomer);

    /// Once a window: the first of the lowest class for whom there is a place now; nobody where one was admitted in this
    /// window, by either call. The first of a class that does not fit holds up its class, not the others.
    std::optional<AdmissionAnswer> next(const ControllerState& state, const Observation& seen,
                                        const ControllerOptions& options);

    /// Takes a newcomer out that gave up. @return false if none with this id waits
    bool withdraw(std::int64_t id);

    [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }
    [[nodiscard]] const std::vector<Newcomer>& waiting() const noexcept {
        return waiting_;
    }  ///< in order of service

  private:
    std::size_t capacity_;
    std::vector<Newcomer> waiting_{};
    std::int64_t admitted_in_ = -1;  ///< the window of the last admission
};

}  // namespace gpusched::control
