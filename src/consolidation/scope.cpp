// SPDX-License-Identifier: Apache-2.0
// Derives the scope of a plan, and the components of the cluster.
#include <gpusched/config.hpp>
#include <gpusched/consolidation/scope.hpp>

#include <algorithm>
#include <numeric>

namespace gpusched::consolidation {

GPUSCHED_EXPORT bool detail::no_budget_left(const Inventory& inventory, TaskId task) {
    if (inventory.tasks.how(task) == Mobility::copy) return false;
    const auto budgets = inventory.budgets_of(task);
    return std::any_of(budgets.begin(), budgets.end(),
                       [&](std::uint32_t budget) { return inventory.budgets[budget].allows() == 0; });
}

GPUSCHED_EXPORT void detail::keep_core_members(const Cluster& cluster, std::vector<std::uint8_t>& movable) {
    const auto& inv = cluster.inventory();
    auto left = inv.job_min_members;
    std::vector<std::int64_t> left_in;
    for (const auto& subgroup : inv.subgroups) left_in.push_back(subgroup.min_members);
    std::vector<std::uint8_t> counted(inv.subgroups.empty() ? 0 : cluster.task_slots());
    const auto count = [&](bool in_subgroups, bool can_move) {
        for (const auto task : cluster.tasks()) {
            const auto i = index(task);
            const auto job = inv.tasks.job[i];
            if (job == none<JobId> ||
                !(can_move ? movable[i] : cluster.is_placed(task) && !cluster.is_movable(task)))
                continue;
            if (!counted.empty() && counted[i]) continue;
            const auto in = inv.subgroup_of(task);
            if (in_subgroups ? in == none<SubgroupId> || left_in[index(in)] <= 0 : left[index(job)] <= 0)
                continue;
            if (in_subgroups) --left_in[index(in)], counted[i] = 1;
            --left[index(job)];
            movable[i] = 0;
        }
    };
    for (const bool in_subgroups : {true, false})
        if (!in_subgroups || !inv.subgroups.empty())
            for (const bool can_move : {false, true}) count(in_subgroups, can_move);
}

GPUSCHED_EXPORT std::int64_t detail::cost_of_leaving(const Cluster& cluster, const Scope& scope,
                                                     NodeId node) {
    std::int64_t cost = 0;
    for (const auto task : cluster.tasks_on(node))
        if (scope.movable[index(task)]) cost += cluster.inventory().tasks.move_cost[index(task)];
    return cost;
}

GPUSCHED_EXPORT Scope make_scope(const Cluster& cluster, const Options& options) {
    const auto& inv = cluster.inventory();
    Scope scope;
    scope.movable.resize(cluster.task_slots());
    scope.may_vacate.resize(cluster.node_slots());
    scope.may_receive.resize(cluster.node_slots());
    std::vector<std::uint8_t> exempt(cluster.node_slots()), clear(cluster.node_slots());
    for (const auto node : options.exempt) exempt[index(node)] = 1;
    if (options.clear)
        for (const auto node : *options.clear) clear[index(node)] = 1;

    for (const auto task : cluster.tasks()) {
        if (!cluster.is_movable(task) || detail::no_budget_left(inv, task)) continue;
        const auto job = inv.tasks.job[index(task)];
        if (options.limits.max_disrupted == 0 ||
            (job != none<JobId> && inv.job_max_disrupted[index(job)] == 0))
            continue;
        scope.movable[index(task)] = 1;
    }
    if (options.protect_core_members) detail::keep_core_members(cluster, scope.movable);
    for (const auto node : options.exempt)
        for (const auto task : cluster.tasks_on(node)) scope.movable[index(task)] = 0;
    if (options.open_price) {
        scope.may_open.resize(cluster.node_slots());
        scope.open_price = *options.open_price;
    }
    for (const auto node : cluster.nodes()) {
        const auto i = index(node);
        if (exempt[i]) continue;
        if (cluster.occupants(node) == 0) {
            if (options.open_price) scope.may_open[i] = !inv.nodes.is_cordoned(node) && !clear[i];
            continue;
        }
        scope.may_receive[i] = !inv.nodes.is_cordoned(node) && !clear[i];
        scope.may_vacate[i] = !options.clear || clear[i];
        for (const auto task : cluster.tasks_on(node))
            if (!inv.tasks.daemon[index(task)] && !scope.movable[index(task)]) scope.may_vacate[i] = 0;
    }
    return scope;
}

GPUSCHED_EXPORT std::vector<std::vector<NodeId>> components(const Cluster& cluster) {
    const auto& inv = cluster.inventory();
    std::vector<std::uint32_t> parent(inv.node_classes.size());
    std::iota(parent.begin(), parent.end(), 0u);
    const auto root = [&](std::uint32_t c) {
        while (parent[c] != c) c = parent[c] = parent[parent[c]];
        return c;
    };
    constexpr auto unseen = 0xFFFFFFFFu;
    std::vector<std::uint32_t> first_class(inv.requirements.size(), unseen);
    for (const auto task : cluster.tasks()) {
        if (!cluster.is_movable(task)) continue;
        const auto requirement = inv.tasks.requirement[index(task)];
        auto& first = first_class[requirement];
        // A task may stay on its node even if it could not newly go there.
        const auto here = inv.nodes.node_class[index(cluster.node_of(task))];
        if (first != unseen) {
            parent[root(here)] = root(first);
            continue;
        }
        first = here;
        for (std::uint32_t c = 0; c < parent.size(); ++c)
            if (inv.eligible(requirement, c)) parent[root(c)] = root(first);
    }
    std::vector<std::vector<NodeId>> groups(inv.node_classes.size());
    for (const auto node : cluster.nodes()) groups[root(inv.nodes.node_class[index(node)])].push_back(node);
    std::erase_if(groups, [](const auto& group) { return group.empty(); });
    std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
        return a.size() != b.size() ? a.size() > b.size() : a.front() < b.front();
    });
    return groups;
}

}  // namespace gpusched::consolidation
