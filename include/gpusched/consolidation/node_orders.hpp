// Node orders: which node a group tries to vacate first.
#pragma once

#include <gpusched/consolidation/concepts.hpp>

namespace gpusched::consolidation {

/// Fewest pods first, the paper's order: such nodes are the easiest to vacate.
struct FewestPods {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        return cluster.occupants(node);
    }
};

/// Least GPU demand first, then fewest cores in use: what has to be placed again is what counts, not how many pods
/// it is cut into.
struct LeastDemand {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        const auto& n = cluster.inventory().nodes;
        const auto gpus =
            std::int64_t{cluster.gpu_count(node)} * whole_gpu_milli - cluster.gpu_free_total_milli(node);
        return gpus * 1'000'000'000 +
               std::min<std::int64_t>(n.cpu_milli[index(node)] - cluster.cpu_free_milli(node), 999'999'999);
    }
};

/// Highest share of GPUs in use last, as descheduling by utilisation does.
struct LowestUtilisation {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        const auto capacity = std::int64_t{std::max(1, cluster.gpu_count(node))} * whole_gpu_milli;
        return (capacity - cluster.gpu_free_total_milli(node)) * 1'000'000 / capacity;
    }
};

}  // namespace gpusched::consolidation
