// SPDX-License-Identifier: Apache-2.0
// Interference: keeps GPU tasks and CPU-only tasks apart, or puts them together with the least disturbance.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/neighbours.hpp>
#include <gpusched/allocation/slowdown.hpp>

#include <cstdint>

namespace gpusched::allocation {

/// Minus the GPU work that is lost to interference between CPU-only tasks and GPU tasks of the node, in
/// millionths of a GPU.
///
/// ASI (section 5.2) does not specify how CPU jobs are placed next to GPU jobs; this is a penalty for it. Let
/// s(x) be the slowdown when CPU-only tasks hold the part x of the node's cores.
///
/// - A GPU task scores minus its GPUs x s(x).
/// - A CPU-only task scores minus the GPUs that work on the node x (s(x with the task) - s(x)).
/// - The score is 0 on nodes without disturbance, and for daemons and Standby tasks.
///
/// O(tasks on the node).
struct Interference {
    static constexpr bool node_local = true;
    SlowdownCurve slowdown = published_slowdown();  ///< given, or learned by `fit_slowdown`
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
