// SPDX-License-Identifier: Apache-2.0
// Computes allocation ratios of clusters and servers.
#include <gpusched/config.hpp>
#include <gpusched/fragmentation/allocation_ratio.hpp>
#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/fragmentation/incremental.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace gpusched::fragmentation {

GPUSCHED_EXPORT AllocationRatio AllocationRatioMetric::state(const Cluster& cluster, NodeId node) noexcept {
    const auto& tasks = cluster.inventory().tasks;
    AllocationRatio out;
    out.capacity_milli = std::int64_t{whole_gpu_milli} * cluster.gpu_count(node);
    // An LP task may run on capacity that a Standby task claims but does not use.
    std::array<std::int64_t, max_gpus_per_node> claimed{}, used{};
    for (const auto task : cluster.tasks_on(node)) {
        const auto i = index(task);
        const auto milli = cluster.gpu_milli(task);
        switch (tasks.priority_class[i]) {
        case PriorityClass::hp:
            out.hp_milli += milli;
            break;
        case PriorityClass::lp:
            out.lp_milli += milli;
            break;
        case PriorityClass::other:
            out.other_milli += milli;
            break;
        }
        for_each_gpu(cluster.gpus_of(task), [&](int g) {
            const auto at = static_cast<std::size_t>(g);
            if (!cluster.may_borrow(task)) claimed[at] += tasks.gpu_share_milli[i];
            if (!tasks.standby[i]) used[at] += tasks.gpu_share_milli[i];
        });
    }
    for (std::size_t g = 0; g < static_cast<std::size_t>(cluster.gpu_count(node)); ++g)
        out.held_milli += std::max(claimed[g], used[g]);
    return out;
}

GPUSCHED_EXPORT void AllocationRatioMetric::add(Total& total, NodeId, const State& state, int sign) noexcept {
    total.capacity_milli += sign * state.capacity_milli;
    total.hp_milli += sign * state.hp_milli;
    total.lp_milli += sign * state.lp_milli;
    total.other_milli += sign * state.other_milli;
    total.held_milli += sign * state.held_milli;
}

GPUSCHED_EXPORT AllocationRatio allocation_ratio(const Cluster& cluster) {
    return evaluate(AllocationRatioMetric{}, cluster);
}

GPUSCHED_EXPORT std::vector<ServerRatios> server_ratios(const Cluster& cluster) {
    const auto& inventory = cluster.inventory();
    const auto share = [](std::int64_t part, std::int64_t whole) {
        return static_cast<double>(part) / static_cast<double>(whole);
    };
    std::map<std::size_t, ServerRatios> by_model;  // models are numbered by first appearance
    ServerRatios all{.gpu_model = "*"};
    for (const auto node : cluster.nodes()) {
        const auto n = requests_on(cluster, node);
        if (n.gpus == 0) continue;
        const auto model = detail::model_index(inventory, node);
        auto& own = by_model[model];
        own.gpu_model = detail::model_name(inventory, model);
        for (auto* row : {&own, &all}) {
            ++row->servers;
            row->hp += share(n.hp_active + n.unborrowed(), n.gpus);
            row->hp_and_lp += share(n.held(), n.gpus);
            if (n.hp_standby == 0) continue;
            ++row->standby_servers;
            row->standby_used += share(n.lp, n.hp_standby);
        }
    }
    std::vector<ServerRatios> rows;
    for (auto& [model, row] : by_model) rows.push_back(std::move(row));
    rows.push_back(all);
    for (auto& row : rows) {
        if (row.servers > 0) row.hp /= static_cast<double>(row.servers);
        if (row.servers > 0) row.hp_and_lp /= static_cast<double>(row.servers);
        if (row.standby_servers > 0) row.standby_used /= static_cast<double>(row.standby_servers);
    }
    return rows;
}

}  // namespace gpusched::fragmentation
