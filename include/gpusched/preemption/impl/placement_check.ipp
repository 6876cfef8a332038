#pragma once

#include <gpusched/model/feasibility.hpp>
#include <gpusched/preemption/detail/cores.hpp>
#include <gpusched/preemption/detail/placement_check.hpp>
#include <gpusched/preemption/preempt.hpp>

#include <algorithm>
#include <array>

namespace gpusched::preemption::detail {

GPUSCHED_INLINE bool placement_holds(const Cluster& cluster, const Request& request, const Decision& decision,
                                     GpuMask healthy) {
    const auto& inv = cluster.inventory();
    const auto& t = inv.tasks;
    const auto node = decision.node;
    const auto n = index(node);
    if (gpu_count(decision.gpus) != request.gpus) return false;
    if ((decision.gpus & ~healthy) != 0) return false;
    if (!inv.nodes.schedulable[n] || !inv.eligible(request.requirement, inv.nodes.node_class[n]))
        return false;
    for (const auto victim : decision.victims)
        if (cluster.node_of(victim) != node || !is_potential_victim(cluster, request, victim)) return false;

    const auto* const hardware =
        inv.nodes.hardware[n] == NodeTable::no_hardware ? nullptr : &inv.hardware[inv.nodes.hardware[n]];
    auto cpu = inv.nodes.cpu_milli[n], memory = inv.nodes.memory_mib[n];
    auto cpu_claimed = cpu;
    std::array<int, max_gpus_per_node> share{}, claimed{};
    std::array<std::int64_t, max_gpus_per_node> gpu_memory{};
    for (const auto task : cluster.tasks_on(node)) {
        if (std::find(decision.victims.begin(), decision.victims.end(), task) != decision.victims.end())
            continue;
        const auto i = index(task);
        memory -= t.memory_mib[i];
        if (!t.standby[i]) cpu -= t.cpu_milli[i];
        if (t.standby[i] || !cluster.may_borrow(task)) cpu_claimed -= t.cpu_milli[i];
        for_each_gpu(cluster.gpus_of(task), [&](int g) {
            const auto k = static_cast<std::size_t>(g);
            if (!t.standby[i]) share[k] += t.gpu_share_milli[i];
            if (t.standby[i] || !cluster.may_borrow(task)) claimed[k] += t.gpu_share_milli[i];
            gpu_memory[k] += t.gpu_memory_mib[i];
        });
    }
    if (memory < request.memory_mib || cpu < request.cpu_milli) return false;
    if (!request.borrows && cpu_claimed < request.cpu_milli) return false;
    bool good = true;
    for_each_gpu(decision.gpus, [&](int g) {
        const auto k = static_cast<std::size_t>(g);
        const int room = whole_gpu_milli - request.share_milli;
        good = good && share[k] <= room && (request.borrows || claimed[k] <= room);
        const auto capacity = inv.nodes.gpu_memory_mib[n];
        good = good && (capacity < 0 || capacity - gpu_memory[k] >= request.gpu_memory_mib);
    });
    if (!good) return false;
    if (request.level) {
        if (hardware == nullptr) return false;
        const auto& places = *request.level == HardwareLevel::numa ? hardware->numa : hardware->socket;
        if (std::none_of(places.begin(), places.end(), [&](GpuMask m) { return (decision.gpus & ~m) == 0; }))
            return false;
    }
    if (request.cpu_local) {
        if (hardware == nullptr) return false;
        const auto& numa = hardware->description.numa_nodes;
        std::int64_t local = 0;
        for (std::size_t i = 0; i < numa.size(); ++i) {
            if ((numa[i].gpus & decision.gpus) == 0) continue;
            auto left = std::int64_t{1000} * numa[i].cores;
            for (const auto task : cluster.tasks_on(node)) {
                if (t.standby[index(task)] && request.borrows) continue;
                if (std::find(decision.victims.begin(), decision.victims.end(), task) !=
                    decision.victims.end())
                    continue;
                left -= cores_used(cluster, *hardware, task, cluster.gpus_of(task), i);
            }
            local +=
                std::max<std::int64_t>(0, left);  // one that is used beyond what it has takes from no other
        }
        if (local < request.cpu_milli) return false;
    }
    if (!request.grouped) return true;
    Cluster after(cluster);
    for (const auto victim : decision.victims) after.remove(victim);
    return find_group_obstacle(after, request.task, node) == Obstacle::none;
}

}  // namespace gpusched::preemption::detail
