// SPDX-License-Identifier: Apache-2.0
// GPU clustering: puts tasks with the same GPU demand together.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <cstdint>

namespace gpusched::allocation {

/// Prefers nodes that already run tasks of the same class (a fraction, 1 GPU, 2 GPUs, ...), and best of all
/// no others.
///
/// Bands as in the published comparison (Weng et al., ATC '23): only that class 75, that class among others
/// 50, no GPU task at all 25, other classes alone 0. Inside a band, up to 25 is added: the more, the fewer
/// GPUs are free, in parts of the largest node. Tasks without GPUs score 0 everywhere and belong to no class.
/// O(tasks on the node).
struct GpuClustering {
    static constexpr bool node_local = true;
    /// The most GPUs of any node, in thousandths of a GPU, >= 1. Nodes with more free GPUs would leave their
    /// band.
    std::int64_t largest_gpu_milli = 8'000;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        if (cluster.inventory().tasks.gpu_count[index(task)] == 0) return 0;
        const int own = class_of(cluster, task);
        bool same = false, others = false;
        for (const auto neighbour : cluster.tasks_on(node))
            if (const int its = class_of(cluster, neighbour); its != no_class)
                (its == own ? same : others) = true;
        const int band = same ? (others ? 50 : 75) : others ? 0 : 25;
        const auto free = cluster.gpu_free_total_milli(node, cluster.lent_to(task));
        return band + 25 * (largest_gpu_milli - free) / largest_gpu_milli;
    }

  private:
    static constexpr int no_class = 0, fraction = -1;  // other classes: the number of whole GPUs
    static int class_of(const Cluster& cluster, TaskId task) noexcept {
        return cluster.is_fraction(task) ? fraction : cluster.inventory().tasks.gpu_count[index(task)];
    }
};

}  // namespace gpusched::allocation
