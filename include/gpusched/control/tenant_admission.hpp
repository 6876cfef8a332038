// SPDX-License-Identifier: Apache-2.0
// Tenant admission: finds places for new tenants that harm no running tenant, and queues the others.
#pragma once

#include <gpusched/control/step.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpusched::control {

/// A tenant that requests admission, with its declared needs.
struct Newcomer {
    std::int64_t id = 0;             ///< chosen by the caller
    std::int32_t service_class = 0;  ///< lower classes are served first
    std::string profile = "1g";      ///< key of the instance it needs
    double pcie_bytes_per_s = 0;     ///< when busy; finite, not negative
    double io_bytes_per_s = 0;       ///< the same, of block I/O
    double tau_ms = 0;               ///< target of its p99; 0 for none
    double alone_ms = 0;             ///< above 0 with a target: its p99 in such an instance on an idle root
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
    double score = 0;        ///< from the scorer; lower is better
    double worst_ratio = 0;  ///< highest predicted p99 / target of protected tenants and the newcomer
};

/// Implements `find_place`.
[[nodiscard]] std::optional<AdmissionPlace> find_place_with(const ControllerState& state,
                                                            const Observation& seen,
                                                            const ControllerOptions& options,
                                                            const Newcomer& newcomer, ScoreRef score);

/// Returns the free placement with the lowest score that keeps every predicted p99 at or below its target;
/// ties go to the lowest (GPU, start). Empty if there is none, while admission is closed, or until every
/// protected tenant's tail is known.
///
/// The tail of a protected tenant is predicted by its learnt model (`TailModel`) with the newcomer's traffic
/// and block I/O added. The newcomer's tail is predicted by the initial coefficients. Existing instances stay
/// unchanged. GPUs that are lost, unreadable or in a change are skipped.
/// @param seen the window of the last step of `state`
/// @throws InvalidInput if a number of the newcomer is out of range, or no GPU has such a profile
/// Complexity: O(GPUs x starts x (tenants + cores)).
template <PlacementScorer S = WeightedScore>
[[nodiscard]] std::optional<AdmissionPlace> find_place(const ControllerState& state, const Observation& seen,
                                                       const ControllerOptions& options,
                                                       const Newcomer& newcomer, const S& score = {}) {
    return find_place_with(state, seen, options, newcomer, score);
}

/// The verdict on a newcomer.
enum class AdmissionVerdict : std::uint8_t { admitted, queued, rejected };

/// The answer to a newcomer.
struct AdmissionAnswer {
    AdmissionVerdict verdict = AdmissionVerdict::queued;
    Newcomer newcomer{};
    std::optional<AdmissionPlace> place{};  ///< its place; absent unless admitted
};

/// A queue of newcomers without a place: first come, first served within a class, with a limit per class. At
/// most one newcomer is admitted per window, because the next window shows its effects. Running tenants are
/// never evicted.
class AdmissionQueue {
  public:
    /// @param capacity waiting newcomers per class, 0 to 100,000; 0 rejects each newcomer that cannot be
    ///     placed at once
    /// @throws InvalidInput if out of range
    explicit AdmissionQueue(std::size_t capacity = 16);

    /// Admits, queues or rejects a newcomer. It is admitted if there is a place, its class and lower classes
    /// have no waiting newcomer, and this window has no admission yet. It is rejected if its class is full,
    /// or if it misses its own target even on an idle root. Otherwise it is queued. An admitted tenant must
    /// be created before the next window, so that the observed layouts are current.
    /// @throws InvalidInput as `find_place`; the queue is unchanged
    AdmissionAnswer offer(const ControllerState& state, const Observation& seen,
                          const ControllerOptions& options, Newcomer newcomer);

    /// Call once per window: admits the first newcomer of the lowest class that has a place now. Admits none
    /// if this window already has an admission, by either call. A newcomer that does not fit blocks its own
    /// class, but no other class.
    std::optional<AdmissionAnswer> next(const ControllerState& state, const Observation& seen,
                                        const ControllerOptions& options);

    /// Removes a newcomer that gave up.
    /// @return false if none with this id waits
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
