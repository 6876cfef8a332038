// SPDX-License-Identifier: Apache-2.0
// Interference: GPU tasks away from CPU-only tasks, CPU-only tasks where they disturb least.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/neighbours.hpp>
#include <gpusched/allocation/slowdown.hpp>

#include <cstdint>

namespace gpusched::allocation {

/// Minus the GPU work that is lost to interference between CPU-only tasks and GPU tasks of the node, in millionths of a GPU.
///
/// ASI (section 5.2) leaves open how CPU jobs are put beside GPU jobs; this is a penalty for it. With s(x) the slowdown where
/// CPU-only tasks hold the part x of the node's cores: minus GPUs of the task x s(x) for a GPU task; minus GPUs that work on the node x
/// (s(x with the task) - s(x)) for a CPU-only task. 0 on nodes where nobody is disturbed, and for daemons and Standby tasks. O(tasks on the node).
struct Interference {
    static constexpr bool node_local = true;
    SlowdownCurve slowdown = published_slowdown();  ///< given, or learnt by `fit_slowdown`
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        if (!interferes(cluster, task)) return 0;
        const auto cores = cluster.inventory().nodes.cpu_milli[index(node)];
        const auto held = cpu_only_milli(cluster, node);
        if (!is_cpu_only(cluster, task)) return -cluster.gpu_milli(task) * slowdown(held, cores);
        const auto more = held + cluster.inventory().tasks.cpu_milli[index(task)];
        return -working_gpu_milli(cluster, node) * (slowdown(more, cores) - slowdown(held, cores));
    }
};

}  // namespace gpusched::allocation
