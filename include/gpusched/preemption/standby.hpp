// SPDX-License-Identifier: Apache-2.0
// Standby: HP tasks that lend their GPUs while they sleep, and get exactly these back in time.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/model/spec.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

namespace gpusched::preemption {

namespace detail {
inline constexpr std::int64_t latest_ms = 1'000'000'000'000'000;  // either way: sums cannot overflow
}

/// The published quantiles of shutdown times (ASI, section 4.2): milliseconds at 0, 5, .., 100 %.
inline constexpr std::array<std::int64_t, 21> published_shutdown_ms{
    500,  1290,  1920,  2510,  3110,  3740,  4410,  5140,  5950,  6840, 7860,
    9000, 10200, 11800, 13600, 16000, 19500, 24500, 32000, 48000, 80000};

/// How long an evicted task takes to end: SIGTERM, its own shutdown for at most the grace period, else SIGKILL; then the
/// GPU is reclaimed.
///
/// Shutdown times are drawn from a table of quantiles, between which they are uniform. The default has the published
/// figures (ASI, section 4.2): 13 s on average, 48 s at the 95th percentile, fewer than 5 % killed after 60 s.
struct EvictionModel {
    /// Milliseconds at 0, 5, .., 100 %, ascending, >= 0.
    std::array<std::int64_t, 21> shutdown_ms = published_shutdown_ms;
    std::int64_t grace_ms = 60'000;  ///< 0 .. 60,000
    std::int64_t reclaim_ms = 0;     ///< from the end of the container to a free GPU, 0 .. 10^15

    struct Timeline {
        std::int64_t term_ms = 0;     ///< SIGTERM
        std::int64_t exit_ms = 0;     ///< the container is gone
        std::int64_t reclaim_ms = 0;  ///< the GPU is free
        bool killed = false;          ///< it took SIGKILL, at `exit_ms`
        bool operator==(const Timeline&) const = default;
    };
    /// One eviction that begins at `now_ms`. @throws InvalidInput beyond -10^15 .. 10^15
    [[nodiscard]] Timeline draw(std::int64_t now_ms, Rng& rng) const;
};
template <class F>
constexpr void visit_fields(std::type_identity<EvictionModel::Timeline>, F&& field) {
    field("term_ms", &EvictionModel::Timeline::term_ms);
    field("exit_ms", &EvictionModel::Timeline::exit_ms);
    field("reclaim_ms", &EvictionModel::Timeline::reclaim_ms);
    field("killed", &EvictionModel::Timeline::killed);
}
template <class F>
constexpr void visit_fields(std::type_identity<EvictionModel>, F&& field) {
    field("shutdown_ms", &EvictionModel::shutdown_ms);
    field("grace_ms", &EvictionModel::grace_ms, within(0, 60'000));
    field("reclaim_ms", &EvictionModel::reclaim_ms, within(std::int64_t{0}, detail::latest_ms));
}

/// @throws InvalidInput with every field that is out of range
void validate(const EvictionModel& model);

enum class StandbyState : std::uint8_t {
    active,    ///< the owner runs on its GPUs
    standby,   ///< it sleeps; its GPUs may be borrowed
    resuming,  ///< borrowers are leaving; nobody may borrow
};
constexpr auto enum_names(StandbyState) {
    return name_table<StandbyState>({
        {StandbyState::active, "active"},
        {StandbyState::standby, "standby"},
        {StandbyState::resuming, "resuming"},
    });
}

/// The GPUs of one HP task on its node, and who borrows them. Active -> Standby -> Resuming -> Active.
///
/// What it guarantees: the owner gets exactly its own GPUs back, at most `grace_ms + reclaim_ms` after it asks; a
/// borrower is always spot (LP); no GPU is borrowed twice, none that was not lent. Times never run backwards, and are
/// within -10^15 .. 10^15 ms.
class StandbyLease {
  public:
    struct Borrower {
        TaskId task = none<TaskId>;
        GpuMask gpus = 0;
        std::optional<EvictionModel::Timeline> eviction{};  ///< once it was told to leave
    };

    /// @throws InvalidInput for no GPUs, and for a model out of range
    StandbyLease(TaskId owner, NodeId node, GpuMask gpus, EvictionModel model = {});

    [[nodiscard]] StandbyState state() const noexcept { return state_; }
    [[nodiscard]] TaskId owner() const noexcept { return owner_; }
    [[nodiscard]] NodeId node() const noexcept { return node_; }
    [[nodiscard]] GpuMask gpus() const noexcept { return gpus_; }
    [[nodiscard]] const std::vector<Borrower>& borrowers() const noexcept { return borrowers_; }
    /// GPUs that may be borrowed now.
    [[nodiscard]] GpuMask lent() const noexcept;

    /// Active -> Standby. @throws InvalidInput in any other state
    void lend(std::int64_t now_ms);
    /// A task starts on lent GPUs.
    /// @return false, and nothing happens, unless the state is Standby, the task is LP, and all GPUs are lent and free
    /// @throws InvalidInput when the task is the owner
    [[nodiscard]] bool borrow(TaskId task, PriorityClass priority_class, GpuMask gpus, std::int64_t now_ms);
    /// A borrower ended by itself; unknown ones are ignored.
    void give_back(TaskId task, std::int64_t now_ms);
    /// Standby -> Resuming (or Active where nobody borrows): all borrowers get SIGTERM now.
    /// @return when the owner will have its GPUs. @throws InvalidInput in any other state
    std::int64_t resume(std::int64_t now_ms, Rng& rng);
    /// Time goes on: borrowers whose GPUs were reclaimed are gone; with the last of them Resuming -> Active.
    /// @return those that have gone, in the order of their borrowing
    std::vector<Borrower> advance(std::int64_t now_ms);

  private:
    void pass(std::int64_t now_ms);
    TaskId owner_;
    NodeId node_;
    GpuMask gpus_;
    EvictionModel model_;
    StandbyState state_ = StandbyState::active;
    std::vector<Borrower> borrowers_;
    std::int64_t now_ms_ = INT64_MIN;
};

}  // namespace gpusched::preemption
