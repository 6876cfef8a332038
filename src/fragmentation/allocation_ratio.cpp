// SPDX-License-Identifier: Apache-2.0
// Computes the allocation ratio of nodes and clusters.
#include <gpusched/config.hpp>
#include <gpusched/fragmentation/allocation_ratio.hpp>
#include <gpusched/fragmentation/incremental.hpp>

#include <algorithm>
#include <array>

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

}  // namespace gpusched::fragmentation
