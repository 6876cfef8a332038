// Whose cores are where.
#pragma once

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gpusched::preemption::detail {

/// What one task uses of one NUMA node's cores, in thousandths: its listed cores there, else its even part over the
/// NUMA nodes of its GPUs (over all without GPUs), the remainder going to the first of them.
inline std::int64_t cores_used(const Cluster& cluster, const HardwareMasks& hardware, TaskId task,
                               GpuMask gpus, std::size_t numa) {
    const auto& inv = cluster.inventory();
    const auto& listed = inv.task_affinities[inv.tasks.affinities[index(task)]].cores;
    const auto& nodes = hardware.description.numa_nodes;
    if (listed) {
        int first = 0;
        for (std::size_t n = 0; n < numa; ++n) first += nodes[n].cores;
        return 1000 * std::count_if(listed->begin(), listed->end(), [&](int core) {
                   return core >= first && core < first + nodes[numa].cores;
               });
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

}  // namespace gpusched::preemption::detail
