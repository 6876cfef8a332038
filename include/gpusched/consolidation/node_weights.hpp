// SPDX-License-Identifier: Apache-2.0
// Node weights: what a vacated node is worth.
#pragma once

#include <gpusched/consolidation/concepts.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace gpusched::consolidation {

/// The most that a node may be worth: the sum over all nodes fits into 64 bits.
[[nodiscard]] inline std::int64_t most_node_weight(const Cluster& cluster) noexcept {
    return std::numeric_limits<std::int64_t>::max() /
           std::max<std::int64_t>(1, static_cast<std::int64_t>(cluster.node_count()));
}

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
        const auto each = model < per_gpu.size() ? per_gpu[model] : std::int64_t{1};
        return std::min(each, std::numeric_limits<std::int64_t>::max() / max_gpus_per_node) *
               gpu_count(cluster.healthy_gpus(node));
    }
};

}  // namespace gpusched::consolidation
