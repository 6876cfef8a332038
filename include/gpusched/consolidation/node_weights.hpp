// Node weights: what a vacated node is worth.
#pragma once

#include <gpusched/consolidation/concepts.hpp>

#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation {

/// Its healthy GPUs.
struct GpuWeight {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        return gpu_count(cluster.healthy_gpus(node));
    }
};

/// One for every node.
struct UnitWeight {
    std::int64_t operator()(const Cluster&, NodeId) const noexcept { return 1; }
};

/// Its healthy GPUs, each worth what `per_gpu` says for its model (by GpuModelId; 1 beyond the end).
struct ModelWeight {
    std::vector<std::int64_t> per_gpu;
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        const auto model = index(cluster.inventory().nodes.gpu_model[index(node)]);
        return gpu_count(cluster.healthy_gpus(node)) * (model < per_gpu.size() ? per_gpu[model] : 1);
    }
};

}  // namespace GPUSCHED_NAMESPACE::consolidation
