// SPDX-License-Identifier: Apache-2.0
// Standby: HP tasks that lend their GPUs while they sleep and get the same GPUs back in bounded time.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::preemption {

namespace detail {
inline constexpr std::int64_t latest_ms =
    1'000'000'000'000'000;  // positive and negative: sums cannot overflow
}

/// The published quantiles of shutdown times (ASI, section 4.2): milliseconds at 0, 5, .., 100 %.
inline constexpr std::array<std::int64_t, 21> published_shutdown_ms{
    500,  1290,  1920,  2510,  3110,  3740,  4410,  5140,  5950,  6840, 7860,
    9000, 10200, 11800, 13600, 16000, 19500, 24500, 32000, 48000, 80000};

/// The duration of an eviction: SIGTERM, shutdown for at most the grace period or else SIGKILL, then
/// reclaiming the GPU.
///
/// Shutdown times are drawn from a table of quantiles, uniformly between two of them. The default is the
/// published distribution (ASI, section 4.2): 13 s on average, 48 s at the 95th percentile, fewer than 5 %
/// killed after 60 s.
struct EvictionModel {
    /// Quantiles of the shutdown time at 0, 5, .., 100 %, milliseconds, ascending, >= 0.
    std::array<std::int64_t, 21> shutdown_ms = published_shutdown_ms;
    std::int64_t grace_ms = 60'000;  ///< from SIGTERM to SIGKILL, 0 to 60,000 ms
    std::int64_t reclaim_ms = 0;     ///< from the end of the container to a free GPU, 0 to 10^15 ms

    struct Timeline {
        std::int64_t term_ms = 0;     ///< SIGTERM
        std::int64_t exit_ms = 0;     ///< the container is gone
        std::int64_t reclaim_ms = 0;  ///< the GPU is free
        bool killed = false;          ///< SIGKILL ended it, at `exit_ms`
        bool operator==(const Timeline&) const = default;
    };
    /// Draws one eviction that starts at `now_ms`.
    /// @throws InvalidInput for times outside -10^15 to 10^15
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

/// The state of a Standby lease.
enum class StandbyState : std::uint8_t {
    active,    ///< the owner runs on its GPUs
    standby,   ///< the owner sleeps; its GPUs may be borrowed
    resuming,  ///< borrowers are leaving; no task may borrow
};

/// The GPUs of one HP task on its node, and their borrowers. Active -> Standby -> Resuming -> Active.
///
/// Guarantees: the owner gets its own GPUs back at most `grace_ms + reclaim_ms` after `resume`; borrowers are
/// spot (LP) tasks; only lent GPUs are borrowed, each by one task. Times never decrease and are within -10^15
/// to 10^15 ms.
class StandbyLease {
  public:
    struct Borrower {
        TaskId task = none<TaskId>;
        GpuMask gpus = 0;
        std::optional<EvictionModel::Timeline> eviction{};  ///< after `resume`
    };

    /// @throws InvalidInput for an empty set of GPUs and for a model out of range
    StandbyLease(TaskId owner, NodeId node, GpuMask gpus, EvictionModel model = {});

    [[nodiscard]] StandbyState state() const noexcept { return state_; }
    [[nodiscard]] TaskId owner() const noexcept { return owner_; }
    [[nodiscard]] NodeId node() const noexcept { return node_; }
    [[nodiscard]] GpuMask gpus() const noexcept { return gpus_; }
    [[nodiscard]] const std::vector<Borrower>& borrowers() const noexcept { return borrowers_; }
    /// GPUs that may be borrowed now.
    [[nodiscard]] GpuMask lent() const noexcept;

    /// Active -> Standby.
    /// @throws InvalidInput in any other state
    void lend(std::int64_t now_ms);
    /// Starts a task on lent GPUs.
    /// @return false, without any change, unless the state is Standby, the task is LP, and all GPUs are lent
    ///     and free
    /// @throws InvalidInput if the task is the owner
    [[nodiscard]] bool borrow(TaskId task, PriorityClass priority_class, GpuMask gpus, std::int64_t now_ms);
    /// Reports that a borrower ended by itself; unknown tasks are ignored.
    void give_back(TaskId task, std::int64_t now_ms);
    /// Standby -> Resuming, or Active if there is no borrower: all borrowers get SIGTERM now.
    /// @return the time at which the owner has its GPUs
    /// @throws InvalidInput in any other state
    std::int64_t resume(std::int64_t now_ms, Rng& rng);
    /// Sets the time and removes the borrowers with reclaimed GPUs; after the last of them Resuming ->
    /// Active.
    /// @return the removed borrowers, in the order of their borrowing
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

/// Controls the containers of a Standby task and of its borrowers.
///
/// Each call returns whether it succeeded. Failed calls are repeated, so an actuator must accept a call more
/// than once:
///     label(owner, true)     marks the task as Standby (pod labels); false removes the mark
///     traffic(owner, false)  stops requests to the task; true resumes them
///     sleep(owner)           replaces its main process by `sleep`; frees cores and GPUs, keeps the container
///     wake(owner)            starts its main process again
///     terminate(borrower)    SIGTERM
///     kill(borrower)         SIGKILL
///     has_exited(borrower)   returns whether its container is gone and its GPUs are free
template <class A>
concept StandbyActuator = requires(A& actuator, TaskId task, bool on) {
    { actuator.label(task, on) } -> std::convertible_to<bool>;
    { actuator.traffic(task, on) } -> std::convertible_to<bool>;
    { actuator.sleep(task) } -> std::convertible_to<bool>;
    { actuator.wake(task) } -> std::convertible_to<bool>;
    { actuator.terminate(task) } -> std::convertible_to<bool>;
    { actuator.kill(task) } -> std::convertible_to<bool>;
    { actuator.has_exited(task) } -> std::convertible_to<bool>;
};

/// One Standby task on a real node: the rules of `StandbyLease`, with an actuator instead of drawn shutdown
/// times.
///
/// Lending stops traffic, puts the owner to sleep and sets its label; then the GPUs are lent. Returning
/// removes the label and sends SIGTERM to every borrower, SIGKILL after the grace period. After all have
/// exited, the owner wakes, gets traffic, and is Active. Source: ASI, section 4.2. The paper's evictions took
/// 13 s on average and 48 s at the 95th percentile.
///
/// The caller calls `advance` periodically, more often near the end of the grace period. Not thread-safe.
template <StandbyActuator A>
class StandbyDriver {
  public:
    /// @param grace_ms from SIGTERM to SIGKILL, 0 to 60,000
    /// @throws InvalidInput for no GPUs, and a grace period out of range
    StandbyDriver(A& actuator, TaskId owner, NodeId node, GpuMask gpus, std::int64_t grace_ms = 60'000)
        : actuator_(actuator), lease_(owner, node, gpus, {.grace_ms = grace_ms}), grace_ms_(grace_ms) {}

    [[nodiscard]] const StandbyLease& lease() const noexcept { return lease_; }
    /// Active after the owner serves again; until then Resuming, even if no borrower is left.
    [[nodiscard]] StandbyState state() const noexcept {
        return returning_ ? StandbyState::resuming : lease_.state();
    }

    /// Active -> Standby.
    /// @return false if a call of the actuator failed: completed calls are undone, and the owner serves
    /// @throws InvalidInput in any other state
    bool lend(std::int64_t now_ms) {
        if (returning_) throw InvalidInput(bad_value("state", enum_name(StandbyState::resuming), "active"));
        auto copy = lease_;
        copy.lend(now_ms);  // throws before the actuator is called
        const auto owner = lease_.owner();
        const bool away = actuator_.traffic(owner, false);
        const bool asleep = away && actuator_.sleep(owner);
        labelled_ = asleep;  // a failed call may have had its effect
        if (asleep && actuator_.label(owner, true)) {
            lease_ = std::move(copy);
            return true;
        }
        returning_ = true;
        static_cast<void>(advance(now_ms));
        return false;
    }
    /// As `StandbyLease::borrow`.
    [[nodiscard]] bool borrow(TaskId task, PriorityClass priority_class, GpuMask gpus, std::int64_t now_ms) {
        return lease_.borrow(task, priority_class, gpus, now_ms);
    }
    /// Reports that a borrower ended by itself; unknown tasks are ignored.
    void give_back(TaskId task, std::int64_t now_ms) {
        lease_.give_back(task, now_ms);
        std::erase(unsignalled_, task);
    }

    /// Standby -> Resuming: no task may borrow, and all borrowers get SIGTERM. Active at once if there is no
    /// borrower.
    /// @return as `advance`
    /// @throws InvalidInput in any other state
    std::vector<TaskId> resume(std::int64_t now_ms) {
        Rng unused(0);  // the lease draws shutdown times, which are ignored here
        static_cast<void>(lease_.resume(now_ms, unused));
        returning_ = true;
        kill_at_ms_ = now_ms + grace_ms_;
        unsignalled_.clear();
        for (const auto& b : lease_.borrowers()) unsignalled_.push_back(b.task);
        return advance(now_ms);
    }

    /// Sets the time: repeats failed SIGTERMs, sends SIGKILL after the grace period, and wakes the owner when
    /// all borrowers have exited.
    /// @return the borrowers that exited since the last call, in the order of their borrowing
    std::vector<TaskId> advance(std::int64_t now_ms) {
        std::vector<TaskId> exited;
        if (!returning_) return exited;
        const auto owner = lease_.owner();
        labelled_ = labelled_ && !actuator_.label(owner, false);
        for (const auto& b : lease_.borrowers())
            if (actuator_.has_exited(b.task)) exited.push_back(b.task);
        for (const auto task : exited) {
            lease_.give_back(task, now_ms);
            std::erase(unsignalled_, task);
        }
        std::erase_if(unsignalled_, [&](TaskId task) { return actuator_.terminate(task); });
        if (now_ms >= kill_at_ms_)
            for (const auto& b : lease_.borrowers()) static_cast<void>(actuator_.kill(b.task));
        if (lease_.state() == StandbyState::active && !labelled_ && actuator_.wake(owner))
            returning_ = !actuator_.traffic(owner, true);
        return exited;
    }

  private:
    A& actuator_;
    StandbyLease lease_;
    std::int64_t grace_ms_;
    std::int64_t kill_at_ms_ = INT64_MAX;
    bool returning_ = false;
    bool labelled_ = false;              ///< the label may be set
    std::vector<TaskId> unsignalled_{};  ///< borrowers without a successful SIGTERM
};

}  // namespace gpusched::preemption
