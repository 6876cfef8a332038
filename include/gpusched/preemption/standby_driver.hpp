// SPDX-License-Identifier: Apache-2.0
// StandbyDriver: carries a Standby lease out on a node.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/preemption/standby.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

namespace gpusched::preemption {

/// Reaches the containers of a Standby task and of those that borrow its GPUs.
///
/// Every call answers whether it was done; what was not is asked for again, so each may come more than once:
///     label(owner, true)     the scheduler sees the task as Standby (pod labels), or no longer
///     traffic(owner, false)  requests no longer go to the task, or do again
///     sleep(owner)           its main process gives way to `sleep`: cores and GPUs are free, the container stays
///     wake(owner)            its main process serves again
///     terminate(borrower)    SIGTERM
///     kill(borrower)         SIGKILL
///     has_exited(borrower)   its container is gone and its GPUs are free
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

/// One Standby task on a real node: the rules of `StandbyLease`, with an actuator in place of drawn shutdown times.
///
/// Lending: traffic away, sleep, label; GPUs are lent once all three are done. Return: the label goes, every borrower gets
/// SIGTERM, after the grace period SIGKILL; once all have exited the owner wakes and gets its traffic, and is Active.
/// Source: ASI, section 4.2. The paper's evictions took 13 s on average and 48 s at the 95th percentile of at most 60 s.
///
/// The caller calls `advance` now and then, more often near the end of the grace period; a borrower that exits is seen by
/// the next call. Not for use by several threads at once.
template <StandbyActuator A>
class StandbyDriver {
  public:
    /// @param grace_ms from SIGTERM to SIGKILL, 0 to 60,000
    /// @throws InvalidInput for no GPUs, and a grace period out of range
    StandbyDriver(A& actuator, TaskId owner, NodeId node, GpuMask gpus, std::int64_t grace_ms = 60'000)
        : actuator_(actuator), lease_(owner, node, gpus, {.grace_ms = grace_ms}), grace_ms_(grace_ms) {}

    [[nodiscard]] const StandbyLease& lease() const noexcept { return lease_; }
    /// Active once the owner serves again; until then Resuming, also when no borrower is left.
    [[nodiscard]] StandbyState state() const noexcept {
        return returning_ ? StandbyState::resuming : lease_.state();
    }

    /// Active -> Standby. @return false where the actuator could not do all of it: what was done is undone, the owner serves
    /// @throws InvalidInput in any other state
    bool lend(std::int64_t now_ms) {
        if (returning_) throw InvalidInput(bad_value("state", enum_name(StandbyState::resuming), "active"));
        auto copy = lease_;
        copy.lend(now_ms);  // what cannot be asked for is not begun
        const auto owner = lease_.owner();
        const bool away = actuator_.traffic(owner, false);
        const bool asleep = away && actuator_.sleep(owner);
        labelled_ = asleep;  // a call that failed may have been done all the same
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
    /// A borrower ended by itself; unknown ones are ignored.
    void give_back(TaskId task, std::int64_t now_ms) {
        lease_.give_back(task, now_ms);
        std::erase(untold_, task);
    }

    /// Standby -> Resuming: nobody may borrow any more, and all borrowers get SIGTERM. Active at once where nobody borrows.
    /// @return as `advance`
    /// @throws InvalidInput in any other state
    std::vector<TaskId> resume(std::int64_t now_ms) {
        Rng unused(0);  // the lease draws shutdown times, which a driver does not use
        static_cast<void>(lease_.resume(now_ms, unused));
        returning_ = true;
        kill_at_ms_ = now_ms + grace_ms_;
        untold_.clear();
        for (const auto& b : lease_.borrowers()) untold_.push_back(b.task);
        return advance(now_ms);
    }

    /// Time goes on: SIGTERM again where it could not be sent, SIGKILL after the grace period, and the owner wakes once
    /// all have exited.
    /// @return borrowers that have gone since the last call, in the order of their borrowing
    std::vector<TaskId> advance(std::int64_t now_ms) {
        std::vector<TaskId> gone;
        if (!returning_) return gone;
        const auto owner = lease_.owner();
        labelled_ = labelled_ && !actuator_.label(owner, false);
        for (const auto& b : lease_.borrowers())
            if (actuator_.has_exited(b.task)) gone.push_back(b.task);
        for (const auto task : gone) {
            lease_.give_back(task, now_ms);
            std::erase(untold_, task);
        }
        std::erase_if(untold_, [&](TaskId task) { return actuator_.terminate(task); });
        if (now_ms >= kill_at_ms_)
            for (const auto& b : lease_.borrowers()) static_cast<void>(actuator_.kill(b.task));
        // The owner serves again once its GPUs are its own.
        if (lease_.state() == StandbyState::active && !labelled_ && actuator_.wake(owner))
            returning_ = !actuator_.traffic(owner, true);
        return gone;
    }

  private:
    A& actuator_;
    StandbyLease lease_;
    std::int64_t grace_ms_;
    std::int64_t kill_at_ms_ = INT64_MAX;
    bool returning_ = false;
    bool labelled_ = false;         ///< the owner may have its label
    std::vector<TaskId> untold_{};  ///< borrowers that SIGTERM could not be sent to yet
};

}  // namespace gpusched::preemption
