// SPDX-License-Identifier: Apache-2.0
// Changes the partial plan of the search, and undoes changes.
#include "admission/search_state.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/detail/small_vector.hpp>

#include <algorithm>
#include <utility>

namespace gpusched::admission::detail {

GPUSCHED_EXPORT SearchState::SearchState(const Cluster& snapshot, Cluster copy, const Options& options,
                                         const PriceTable& prices, const preemption::detail::GangTable& gangs)
    : work(std::move(copy)), fate(snapshot.task_slots()), broken(snapshot.inventory().job_names.size()),
      snapshot_(snapshot), inv_(snapshot.inventory()), options_(options), prices_(prices), gangs_(gangs),
      gone_(inv_.job_names.size()), gone_in_(inv_.subgroups.size()), down_(inv_.budgets.size()) {
    free.rebuild(work);
}

SearchState::Mark SearchState::mark() const noexcept {
    return {changes.size(), journal_.size(), puts.size(), todo.size(), evictions.size()};
}

void SearchState::undo(const Mark& to) {
    work.rollback(to.changes);
    for (auto i = to.changes; i < changes.size(); ++i)
        for (const auto node : {changes[i].from, changes[i].to})
            if (node != none<NodeId>) free.usage_changed(work, node);
    changes.resize(to.changes);
    for (; journal_.size() > to.journal; journal_.pop_back()) *journal_.back().first = journal_.back().second;
    puts.resize(to.puts);
    todo.resize(to.todo);
    evictions.resize(to.evictions);
}

void SearchState::set(std::int64_t& value, std::int64_t to) {
    journal_.emplace_back(&value, value);
    value = to;
}

void SearchState::change(TaskId task, NodeId node, GpuMask gpus) {
    const auto from = work.node_of(task);
    work.assign(task, node, gpus);
    changes.push_back({task, from, node, gpus});
    for (const auto at : {from, node})
        if (at != none<NodeId>) free.usage_changed(work, at);
}

void SearchState::lift(const Item& item) {
    set(fate[index(item.task)], lifted);
    set(cost, cost + prices_[item.task].least);
    change(item.task, none<NodeId>, 0);
    todo.push_back(item);
}

bool SearchState::may_be_down(TaskId task) const {
    const auto budgets = inv_.budgets_of(task);
    return std::all_of(budgets.begin(), budgets.end(),
                       [&](std::uint32_t budget) { return down_[budget] < inv_.budgets[budget].allows(); });
}

bool SearchState::evict(TaskId task, bool again, bool& cut) {
    if (options_.max_evictions && static_cast<std::int64_t>(evictions.size()) >= *options_.max_evictions)
        return false;
    evictions.push_back(task);
    for (const auto b : inv_.budgets_of(task)) {
        set(down_[b], down_[b] + 1);
        if (down_[b] <= inv_.budgets[b].allows()) continue;
        if (!options_.prices.budget_price_s) return false;
        set(cost, std::min(never, cost + *options_.prices.budget_price_s * 1000));
    }
    const auto job = inv_.tasks.job[index(task)];
    if (job == none<JobId> || broken[index(job)] != 0) return true;
    set(gone_[index(job)], gone_[index(job)] + 1);
    bool whole = gone_[index(job)] <= gangs_.surplus(inv_, job);
    if (const auto in = inv_.subgroup_of(task); in != none<SubgroupId>) {
        set(gone_in_[index(in)], gone_in_[index(in)] + 1);
        whole = whole && gone_in_[index(in)] <= gangs_.surplus(inv_, in);
    }
    return whole || evict_gang(job, task, again, cut);
}

bool SearchState::evict_gang(JobId job, TaskId first, bool again, bool& cut) {
    if (prices_.unbroken[index(job)]) return false;
    cut = true;  // other splits of the gang into tasks that run again and tasks that do not
    set(broken[index(job)], again ? 1 : 2);
    boost::container::small_vector<TaskId, 16> members;
    gangs_.for_each(job, [&](TaskId member) { members.push_back(member); });
    std::sort(members.begin(), members.end());
    for (const auto member : members) {
        const auto state = fate[index(member)];
        if (member == first || state == replaced || state == lost) {
            if (member != first && state == (again ? lost : replaced)) return false;
            continue;
        }
        const auto& price = prices_[member];
        const auto own = again ? price.replace : price.lose;
        if (own >= never || (state != untouched && state != lifted)) return false;
        if (!evict(member, again, cut)) return false;
        set(cost, cost + own - (state == lifted ? price.least : 0));
        if (state == untouched) {
            change(member, none<NodeId>, 0);
            if (again) todo.push_back({member, 1});
        }
        // A lifted task is in `todo` already.
        set(fate[index(member)], again ? evicted : lost);
        if (!again) set(lost_milli, lost_milli + snapshot_.gpu_milli(member));
    }
    return true;
}

}  // namespace gpusched::admission::detail
