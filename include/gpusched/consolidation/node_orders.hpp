// SPDX-License-Identifier: Apache-2.0
// Node orders: which node a group tries to vacate first.
#pragma once

#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/core/gpu_mask.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace gpusched::consolidation {

/// Fewest pods first, the paper's order: such nodes are the easiest to vacate.
struct FewestPods {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        return cluster.occupants(node);
    }
};

/// Least demand first: what has to be placed again. Sixteen cores count as much as a GPU, since a node that gives its cores
/// to others makes their GPUs as useless as one that gives GPUs; and so does a pod, since each is a move.
struct LeastDemand {
    static constexpr std::int64_t cores_per_gpu = 16;
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        const auto gpu_milli =
            std::int64_t{cluster.gpu_count(node)} * whole_gpu_milli - cluster.gpu_free_total_milli(node);
        const auto cpu_milli =
            cluster.inventory().nodes.cpu_milli[index(node)] - cluster.cpu_free_milli(node);
        return gpu_milli + cpu_milli / cores_per_gpu +
               std::int64_t{cluster.occupants(node)} * whole_gpu_milli;
    }
};

/// Least demand over the cube root of the node's GPUs first, and nodes without GPUs last: where GPUs are what counts, a large
/// node is worth more demand, and not so much more that no small one is vacated.
struct LeastDemandForSize {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        const auto gpus = cluster.gpu_count(node);
        if (gpus == 0) return std::numeric_limits<std::int64_t>::max() / 2;
        return LeastDemand{}(cluster, node) * 1000 / cube_roots_milli[static_cast<std::size_t>(gpus)];
    }

  private:
    // By number of GPUs, rounded down: the order must not depend on how a machine rounds.
    static constexpr auto cube_roots_milli = [] {
        std::array<std::int64_t, max_gpus_per_node + 1> roots{};
        for (std::int64_t gpus = 1, root = 1000; gpus <= max_gpus_per_node; ++gpus) {
            while ((root + 1) * (root + 1) * (root + 1) <= gpus * 1'000'000'000) ++root;
            roots[static_cast<std::size_t>(gpus)] = root;
        }
        return roots;
    }();
};

/// Highest share of GPUs in use last, as descheduling by utilisation does.
struct LowestUtilisation {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        const auto capacity = std::int64_t{cluster.gpu_count(node)} * whole_gpu_milli;
        if (capacity == 0) return 0;
        return (capacity - cluster.gpu_free_total_milli(node)) * 1'000'000 / capacity;
    }
};

}  // namespace gpusched::consolidation
