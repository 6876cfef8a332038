// SPDX-License-Identifier: Apache-2.0
// Draws evictions, and keeps the state of Standby leases.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/preemption/standby.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace gpusched::preemption {

GPUSCHED_EXPORT void validate(const EvictionModel& model) {
    Problems problems;
    for (std::size_t i = 0; i < model.shutdown_ms.size(); ++i)
        check_at_least(problems, "shutdown_ms[" + std::to_string(i) + "]", model.shutdown_ms[i],
                       i == 0 ? 0 : model.shutdown_ms[i - 1]);
    check_fields(problems, model);
    problems.throw_if_any();
}

GPUSCHED_EXPORT EvictionModel::Timeline EvictionModel::draw(std::int64_t now_ms, Rng& rng) const {
    require_range("now_ms", now_ms, -detail::latest_ms, detail::latest_ms);
    const auto segment = static_cast<std::size_t>(rng.below(shutdown_ms.size() - 1));
    const auto takes = rng.between(shutdown_ms[segment], shutdown_ms[segment + 1]);
    const bool is_killed = takes > grace_ms;
    const auto exit = now_ms + (is_killed ? grace_ms : takes);
    return {now_ms, exit, exit + reclaim_ms, is_killed};
}

GPUSCHED_EXPORT StandbyLease::StandbyLease(TaskId owner, NodeId node, GpuMask gpus, EvictionModel model)
    : owner_(owner), node_(node), gpus_(gpus), model_(model) {
    validate(model);
    if (gpus == 0) throw InvalidInput("gpus: none; expected at least one GPU");
}

GPUSCHED_EXPORT GpuMask StandbyLease::lent() const noexcept {
    if (state_ != StandbyState::standby) return 0;
    GpuMask free = gpus_;
    for (const auto& b : borrowers_) free = static_cast<GpuMask>(free & ~b.gpus);
    return free;
}

GPUSCHED_EXPORT void StandbyLease::pass(std::int64_t now_ms) {
    require_range("now_ms", now_ms, -detail::latest_ms, detail::latest_ms);
    if (now_ms < now_ms_)
        throw InvalidInput(bad_value("now_ms", number_text(now_ms), "at least " + number_text(now_ms_)));
    now_ms_ = now_ms;
}

GPUSCHED_EXPORT void StandbyLease::lend(std::int64_t now_ms) {
    if (state_ != StandbyState::active) throw InvalidInput(bad_value("state", enum_name(state_), "active"));
    pass(now_ms);
    state_ = StandbyState::standby;
}

GPUSCHED_EXPORT bool StandbyLease::borrow(TaskId task, PriorityClass priority_class, GpuMask gpus,
                                          std::int64_t now_ms) {
    if (task == owner_) throw InvalidInput(bad_value("task", "the owner", "another task"));
    if (priority_class != PriorityClass::lp || gpus == 0 || (gpus & ~lent()) != 0) return false;
    pass(now_ms);
    borrowers_.push_back({task, gpus, {}});
    return true;
}

GPUSCHED_EXPORT void StandbyLease::give_back(TaskId task, std::int64_t now_ms) {
    pass(now_ms);
    std::erase_if(borrowers_, [&](const Borrower& b) { return b.task == task; });
    if (state_ == StandbyState::resuming && borrowers_.empty()) state_ = StandbyState::active;
}

GPUSCHED_EXPORT std::int64_t StandbyLease::resume(std::int64_t now_ms, Rng& rng) {
    if (state_ != StandbyState::standby) throw InvalidInput(bad_value("state", enum_name(state_), "standby"));
    pass(now_ms);
    auto ready = now_ms;
    for (auto& b : borrowers_) {
        b.eviction = model_.draw(now_ms, rng);
        ready = std::max(ready, b.eviction->reclaim_ms);
    }
    state_ = borrowers_.empty() ? StandbyState::active : StandbyState::resuming;
    return ready;
}

GPUSCHED_EXPORT std::vector<StandbyLease::Borrower> StandbyLease::advance(std::int64_t now_ms) {
    pass(now_ms);
    std::vector<Borrower> removed;
    std::erase_if(borrowers_, [&](const Borrower& b) {
        const bool left = b.eviction && b.eviction->reclaim_ms <= now_ms;
        if (left) removed.push_back(b);
        return left;
    });
    if (state_ == StandbyState::resuming && borrowers_.empty()) state_ = StandbyState::active;
    return removed;
}

}  // namespace gpusched::preemption
