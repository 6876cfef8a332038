// SPDX-License-Identifier: Apache-2.0
// Neighbours: the part of a node's cores, and of one GPU, that is held by tasks which may disturb others.
#pragma once

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>

#include <cstdint>

namespace gpusched::allocation {

/// True for a task that asks for no GPU and no other device.
[[nodiscard]] inline bool is_cpu_only(const Cluster& cluster, TaskId task) noexcept {
    const auto& inventory = cluster.inventory();
    return inventory.tasks.gpu_count[index(task)] == 0 &&
           inventory.extras[inventory.tasks.extras[index(task)]].device_count == 0;
}

/// False for daemons and for Standby tasks, which lend their resources: they disturb no task and are not
/// disturbed.
[[nodiscard]] inline bool interferes(const Cluster& cluster, TaskId task) noexcept {
    const auto& t = cluster.inventory().tasks;
    return !t.daemon[index(task)] && !t.standby[index(task)];
}

/// Thousandths of a core that interfering CPU-only tasks hold on the node. O(tasks on the node).
[[nodiscard]] inline std::int64_t cpu_only_milli(const Cluster& cluster, NodeId node) noexcept {
    const auto& t = cluster.inventory().tasks;
    std::int64_t held = 0;
    for (const auto task : cluster.tasks_on(node))
        if (is_cpu_only(cluster, task) && interferes(cluster, task)) held += t.cpu_milli[index(task)];
    return held;
}

/// Thousandths of GPUs that interfering tasks hold on the node. O(tasks on the node).
[[nodiscard]] inline std::int64_t working_gpu_milli(const Cluster& cluster, NodeId node) noexcept {
    std::int64_t sum = 0;
    for (const auto task : cluster.tasks_on(node))
        if (interferes(cluster, task)) sum += cluster.gpu_milli(task);
    return sum;
}

/// The fractions on one GPU, in thousandths of it.
struct GpuSharing {
    std::int64_t online_milli = 0;   ///< of fractions that are not LP
    std::int64_t offline_milli = 0;  ///< of LP fractions
};

/// The interfering fractions on one GPU of a node. O(tasks on the node).
[[nodiscard]] inline GpuSharing sharing(const Cluster& cluster, NodeId node, int gpu) noexcept {
    GpuSharing sum;
    for (const auto task : cluster.tasks_on(node))
        if (cluster.is_fraction(task) && interferes(cluster, task) &&
            (cluster.gpus_of(task) & gpu_bit(gpu)) != 0)
            (cluster.may_borrow(task) ? sum.offline_milli : sum.online_milli) += cluster.gpu_milli(task);
    return sum;
}

namespace detail {

/// Returns those of the fraction's possible GPUs on which, with it, LP fractions hold at most the limit, or
/// share with no others.
[[nodiscard]] inline GpuMask within_offline_limit(const Cluster& cluster, TaskId task, NodeId node,
                                                  std::int64_t limit_milli) noexcept {
    GpuMask within = 0;
    for_each_gpu(candidate_gpus(cluster, task, node), [&](int g) {
        auto shared = interferes(cluster, task) ? sharing(cluster, node, g) : GpuSharing{};
        (cluster.may_borrow(task) ? shared.offline_milli : shared.online_milli) += cluster.gpu_milli(task);
        if (shared.online_milli == 0 || shared.offline_milli == 0 || shared.offline_milli <= limit_milli)
            within |= gpu_bit(g);
    });
    return within;
}

}  // namespace detail

}  // namespace gpusched::allocation
