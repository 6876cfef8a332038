// SPDX-License-Identifier: Apache-2.0
// The rankers NetworkWish and HardwareWish.
#include <gpusched/allocation/rankers.hpp>
#include <gpusched/config.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>

namespace gpusched::allocation {

GPUSCHED_EXPORT NetworkWish::Members NetworkWish::for_task(const Cluster& cluster, TaskId task) const {
    const auto& inv = cluster.inventory();
    const auto& wish = inv.task_affinities[inv.tasks.affinities[index(task)]].network_affinity;
    const auto job = inv.tasks.job[index(task)];
    Members members;
    if (!wish || job == none<JobId>) return members;
    members.level = wish->level;
    members.count.resize(inv.domain_count(wish->level));
    for (const auto other : cluster.tasks())
        if (inv.tasks.job[index(other)] == job && other != task && cluster.is_placed(other))
            ++members.count[index(inv.domain(wish->level, cluster.node_of(other)))];
    return members;
}

GPUSCHED_EXPORT std::int64_t NetworkWish::Members::operator()(const Cluster& cluster, TaskId,
                                                              NodeId node) const {
    return count.empty() ? 0 : count[index(cluster.inventory().domain(level, node))];
}

GPUSCHED_EXPORT std::int64_t NetworkWish::operator()(const Cluster& cluster, TaskId task, NodeId node) const {
    return for_task(cluster, task)(cluster, task, node);
}

GPUSCHED_EXPORT std::int64_t HardwareWish::operator()(const Cluster& cluster, TaskId task,
                                                      NodeId node) const {
    const auto& inv = cluster.inventory();
    const int wanted = inv.tasks.gpu_count[index(task)];
    const auto& wishes = inv.task_affinities[inv.tasks.affinities[index(task)]].hardware_affinity;
    const auto id = inv.nodes.hardware[index(node)];
    if (wanted < 2 || wishes.empty() || id == NodeTable::no_hardware) return 0;
    const auto candidates = candidate_gpus(cluster, task, node);
    const auto enough = [&](const std::vector<GpuMask>& localities) {
        return std::any_of(localities.begin(), localities.end(), [&](GpuMask mask) {
            return gpu_count(static_cast<GpuMask>(mask & candidates)) >= wanted;
        });
    };
    const bool numa = std::any_of(wishes.begin(), wishes.end(),
                                  [](const auto& wish) { return wish.level == HardwareLevel::numa; });
    if (numa && enough(inv.hardware[id].numa)) return 2;
    return enough(inv.hardware[id].socket) ? 1 : 0;
}

}  // namespace gpusched::allocation
