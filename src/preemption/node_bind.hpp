// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preemption/cost.hpp"
#include "preemption/node_problem.hpp"

#include <algorithm>

namespace gpusched::preemption::detail {

/// Could the preemptor's place be lost because the task leaves another node? Where it spreads, what others hold counts.
inline bool is_spread_over(const Cluster& cluster, TaskId task, TaskId other) noexcept {
    const auto& inv = cluster.inventory();
    const auto own = inv.selection_memberships(task), others = inv.selection_memberships(other);
    return std::any_of(own.begin(), own.end(), [&](const Membership& m) {
        return m.is_bound() && inv.group_sets[m.set].kind == GroupKind::spread &&
               std::any_of(others.begin(), others.end(),
                           [&](const Membership& o) { return o.set == m.set && o.is_member(); });
    });
}

template <class Set>
void NodeProblem<Set>::bind(const CostFunction& cost) {
    if (table_of_gangs_ != nullptr && table_of_gangs_->any()) bind_gangs(cost);
    if (!cluster_->inventory().tasks.budgets.empty()) bind_budgets();
}

template <class Set>
void NodeProblem<Set>::bind_gangs(const CostFunction& cost) {
    const auto& inv = cluster_->inventory();
    const auto& t = inv.tasks;
    const auto& table = *table_of_gangs_;
    for (int i = 0; i < count_; ++i) {
        auto& v = victims_[static_cast<std::size_t>(i)];
        const auto job = t.job[index(v.task)];
        if (job == none<JobId> || !table.is_gang(job)) continue;
        const auto begin = gangs_.begin(), end = begin + gang_count_;
        const auto known = std::find_if(begin, end, [&](const auto& gang) { return gang.job == job; });
        v.gang = static_cast<std::int16_t>(known - begin);
        if (known == end) {
            if (gangs_.size() == static_cast<std::size_t>(gang_count_)) gangs_.emplace_back();
            auto& fresh = gangs_[static_cast<std::size_t>(gang_count_++)];
            fresh.job = job;
            clear(fresh.members);
        }
        insert(gangs_[static_cast<std::size_t>(v.gang)].members, i);
    }
    // Those of which as many may leave as could bind nobody.
    int kept = 0;
    subgroups_.clear();
    for (int g = 0; g < gang_count_; ++g) {
        auto& gang = gangs_[static_cast<std::size_t>(g)];
        gang.surplus = table.surplus(inv, gang.job);
        find_tight_subgroups(gang);
        const bool tight = exceeds(gang.members, gang);
        for_each_victim(gang.members, [&](int i) {
            victims_[static_cast<std::size_t>(i)].gang = static_cast<std::int16_t>(tight ? kept : -1);
        });
        if (tight) std::swap(gang, gangs_[static_cast<std::size_t>(kept++)]);
    }
    gang_count_ = kept;
    for (int g = 0; g < gang_count_; ++g) {
        auto& gang = gangs_[static_cast<std::size_t>(g)];
        gang.elsewhere = {};
        gang.cost = 0;
        gang.breakable = !request_->never_breaks(gang.job);
        const auto lose = [](std::int64_t& sum, std::int64_t more) {
            sum = std::min(sum, largest_cost - more) + more;
        };
        for_each_victim(gang.members, [&](int i) { lose(gang.cost, victim(i).cost); });
        table.for_each(gang.job, [&](TaskId task) {
            if (!gang.breakable) return;
            if (!is_potential_victim(*cluster_, *request_, task)) {
                gang.breakable = false;
                return;
            }
            if (cluster_->node_of(task) == node_) return;
            if (request_->grouped && is_spread_over(*cluster_, request_->task, task)) {
                gang.breakable = false;
                return;
            }
            const auto lost = cost_of(*cluster_, task, request_->now, cost);
            auto& sums = gang.elsewhere;
            ++sums.count;
            sums.priority += t.priority[index(task)];
            sums.max_priority = std::max(sums.max_priority, t.priority[index(task)]);
            sums.weight.add(PriorityWeight(t.priority[index(task)]));
            lose(sums.cost, lost);
            lose(gang.cost, lost);
        });
    }
}

template <class Set>
void NodeProblem<Set>::find_tight_subgroups(Gang<Set>& gang) {
    const auto& inv = cluster_->inventory();
    const auto first = subgroups_.size();
    for (const auto subgroup : inv.subgroups_of(gang.job)) {
        TightSubgroup<Set> one{subgroup, {}, table_of_gangs_->surplus(inv, subgroup)};
        for_each_victim(gang.members, [&](int i) {
            if (inv.subgroup_of(victim(i).task) == subgroup) insert(one.members, i);
        });
        if (count_of(one.members) > one.surplus) subgroups_.push_back(std::move(one));
    }
    gang.first_subgroup = static_cast<int>(first);
    gang.end_subgroup = static_cast<int>(subgroups_.size());
}

template <class Set>
void NodeProblem<Set>::bind_budgets() {
    const auto& inv = cluster_->inventory();
    const auto entry = [&](std::uint32_t budget) -> TightBudget<Set>& {
        for (int b = 0; b < budget_count_; ++b)
            if (budgets_[static_cast<std::size_t>(b)].budget == budget)
                return budgets_[static_cast<std::size_t>(b)];
        if (budgets_.size() == static_cast<std::size_t>(budget_count_)) budgets_.emplace_back();
        auto& fresh = budgets_[static_cast<std::size_t>(budget_count_++)];
        fresh.budget = budget;
        clear(fresh.members);
        fresh.allowed = request_->allowed_down(inv, budget);
        fresh.elsewhere.clear();
        return fresh;
    };
    for (int i = 0; i < count_; ++i)
        for (const auto budget : inv.budgets_of(victim(i).task)) insert(entry(budget).members, i);
    for (int g = 0; g < gang_count_; ++g) {
        if (!gangs_[static_cast<std::size_t>(g)].breakable) continue;
        table_of_gangs_->for_each(gangs_[static_cast<std::size_t>(g)].job, [&](TaskId task) {
            if (cluster_->node_of(task) == node_) return;
            for (const auto budget : inv.budgets_of(task)) {
                auto& others = entry(budget).elsewhere;
                if (others.empty() || others.back().first != g) others.emplace_back(g, 0);
                ++others.back().second;
            }
        });
    }
    int kept = 0;
    for (int b = 0; b < budget_count_; ++b) {
        auto& one = budgets_[static_cast<std::size_t>(b)];
        std::int64_t all = count_of(one.members);
        for (const auto& [gang, members] : one.elsewhere) all += members;
        if (all > one.allowed) std::swap(one, budgets_[static_cast<std::size_t>(kept++)]);
    }
    budget_count_ = kept;
}

template <class Set>
Set NodeProblem<Set>::close(Argument set) const {
    auto all = set;
    for (int g = 0; g < gang_count_; ++g)
        if (breaks(set, g)) all = all | gangs_[static_cast<std::size_t>(g)].members;
    return all;
}

template <class Set>
bool NodeProblem<Set>::breaks_as_it_may(Argument set) const {
    for (int g = 0; g < gang_count_; ++g) {
        const auto& gang = gangs_[static_cast<std::size_t>(g)];
        if (!gang.breakable && exceeds(set, gang)) return false;
    }
    return true;
}

template <class Set>
template <class Visit>
void NodeProblem<Set>::for_each_broken_budget(Argument set, Visit&& visit) const {
    for (int b = 0; b < budget_count_; ++b) {
        const auto& one = budgets_[static_cast<std::size_t>(b)];
        std::int64_t down = count_of(set & one.members);
        for (const auto& [gang, members] : one.elsewhere)
            if (breaks(set, gang)) down += members;
        if (down > one.allowed) visit(one.budget, down - one.allowed);
    }
}

template <class Set>
std::int64_t NodeProblem<Set>::over_budget(Argument set) const {
    std::int64_t over = 0;
    for_each_broken_budget(set, [&](std::uint32_t, std::int64_t more) { over += more; });
    return over;
}

template <class Set>
template <class Visit>
void NodeProblem<Set>::for_each_elsewhere(Argument set, Visit&& visit) const {
    for (int g = 0; g < gang_count_; ++g)
        if (breaks(set, g))
            table_of_gangs_->for_each(gangs_[static_cast<std::size_t>(g)].job, [&](TaskId task) {
                if (cluster_->node_of(task) != node_) visit(task);
            });
}

template <class Set>
Set NodeProblem<Set>::beyond_budgets(const int* order, int count) const {
    Set beyond{};
    for (int b = 0; b < budget_count_; ++b) {
        const auto& one = budgets_[static_cast<std::size_t>(b)];
        auto left = one.allowed;
        for (int i = 0; i < count; ++i)
            if (contains(one.members, order[i]) && --left < 0) insert(beyond, order[i]);
    }
    return beyond;
}

template <class Set>
Set NodeProblem<Set>::all_that_may(const int* order, int count) const {
    auto may = all();
    for (int g = 0; g < gang_count_; ++g) {
        const auto& gang = gangs_[static_cast<std::size_t>(g)];
        if (gang.breakable) continue;
        for_each_surplus(gang, [&](const Set& members, std::int64_t surplus) {
            auto excess = count_of(may & members) - surplus;
            for (int i = 0; i < count && excess > 0; ++i)
                if (contains(Set(may & members), order[i])) may = minus(may, only<Set>(order[i])), --excess;
        });
    }
    return may;
}

template <class Set>
template <class First>
Set NodeProblem<Set>::with_back(Argument set, int i, First&& first) const {
    auto left = minus(set, only<Set>(i));
    const auto gang = victim(i).gang;
    if (gang < 0 || !breaks(set, gang)) return left;
    for_each_surplus(gangs_[static_cast<std::size_t>(gang)], [&](const Set& members, std::int64_t surplus) {
        while (count_of(left & members) > surplus) {
            int next = -1;
            for_each_victim(Set(left & members), [&](int j) {
                if (next < 0 || first(j, next)) next = j;
            });
            left = minus(left, only<Set>(next));
        }
    });
    return left;
}

}  // namespace gpusched::preemption::detail
