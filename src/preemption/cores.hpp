// SPDX-License-Identifier: Apache-2.0
// Whose cores are where.
#pragma once

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace gpusched::preemption::detail {

/// The cores that a task lists, each once; nothing = it lists none.
inline const std::optional<std::vector<int>>& listed_cores(const Cluster& cluster, TaskId task) {
    const auto& inv = cluster.inventory();
    return inv.task_affinities[inv.tasks.affinities[index(task)]].cores;
}

/// The first core of a NUMA node and the one after its last.
inline std::pair<int, int> cores_of(const HardwareMasks& hardware, std::size_t numa) {
    const auto& nodes = hardware.description.numa_nodes;
    int first = 0;
    for (std::size_t n = 0; n < numa; ++n) first += nodes[n].cores;
    return {first, first + nodes[numa].cores};
}

/// What one task uses of one NUMA node's cores, in thousandths: its listed cores there, else its even part over the
/// NUMA nodes of its GPUs (over all without GPUs), the remainder going to the first of them.
inline std::int64_t cores_used(const Cluster& cluster, const HardwareMasks& hardware, TaskId task,
                               GpuMask gpus, std::size_t numa) {
    const auto& inv = cluster.inventory();
    const auto& nodes = hardware.description.numa_nodes;
    if (const auto& listed = listed_cores(cluster, task)) {
        const auto here = cores_of(hardware, numa);
        return 1000 * std::count_if(listed->begin(), listed->end(),
                                    [&](int core) { return core >= here.first && core < here.second; });
    }
    const auto shares = [&](std::size_t n) { return gpus == 0 || (nodes[n].gpus & gpus) != 0; };
    if (!shares(numa)) return 0;
    std::int64_t among = 0, before = 0;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        if (!shares(n)) continue;
        ++among;
        before += n < numa ? 1 : 0;
    }
    const auto cpu = inv.tasks.cpu_milli[index(task)];
    return cpu / among + (before < cpu % among ? 1 : 0);
}

/// What the tasks that stay keep of one NUMA node's cores from a preemptor, in thousandths. For one that may not borrow a
/// core that is both lent and borrowed counts once: listed cores are told apart, of others as many are taken to be
/// both as can be. Never more for fewer tasks.
/// @param stays of a task on the node
template <class Stays>
std::int64_t cores_kept(const Cluster& cluster, const HardwareMasks& hardware, NodeId node, std::size_t numa,
                        bool may_borrow, Stays&& stays) {
    const auto& standby = cluster.inventory().tasks.standby;
    std::int64_t firm = 0, lent = 0, borrowed = 0;  // neither; claimed only; used only
    std::int64_t lent_by_list = 0, borrowed_by_list = 0, both_by_list = 0;
    for (const auto task : cluster.tasks_on(node)) {
        const bool lends = standby[index(task)] != 0;
        if ((lends && may_borrow) || !stays(task)) continue;
        const auto amount =
            cores_used(cluster, hardware, task, cluster.gpus_of(task) & ~cluster.devices(node), numa);
        const bool borrows = !lends && cluster.may_borrow(task);
        (lends ? lent : borrows ? borrowed : firm) += amount;
        if (listed_cores(cluster, task) && lends) lent_by_list += amount;
        if (listed_cores(cluster, task) && borrows) borrowed_by_list += amount;
    }
    if (lent_by_list == 0 || borrowed_by_list == 0)
        return firm + std::max({lent, borrowed, lent_by_list + borrowed_by_list});
    const auto [first, end] = cores_of(hardware, numa);
    for (int core = first; core < end; ++core) {
        std::int64_t lenders = 0, borrowers = 0;
        for (const auto task : cluster.tasks_on(node)) {
            const auto& listed = listed_cores(cluster, task);
            const bool lends = standby[index(task)] != 0;
            if (!listed || !(lends || cluster.may_borrow(task)) || !stays(task)) continue;
            if (std::find(listed->begin(), listed->end(), core) != listed->end())
                ++(lends ? lenders : borrowers);
        }
        both_by_list += 1000 * std::min(lenders, borrowers);
    }
    return firm + std::max({lent, borrowed, lent_by_list + borrowed_by_list - both_by_list});
}

}  // namespace gpusched::preemption::detail
