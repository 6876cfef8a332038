// SPDX-License-Identifier: Apache-2.0
// Best fit and dot product: classic vector bin packing over CPU and GPU.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gpusched::allocation {

/// The largest node of the cluster; free amounts and requests are divided by its amounts. A node's GPUs count
/// as one number. The defaults are those of the published comparison (Weng et al., ATC '23).
struct LargestNode {
    std::int64_t cpu_milli = 128'000;  ///< >= 1
    std::int64_t gpu_milli = 8'000;    ///< >= 1
    bool operator==(const LargestNode&) const = default;
};

/// Returns the largest amounts of any node of that inventory, at least 1 each. O(nodes).
[[nodiscard]] inline LargestNode largest_node(const Inventory& inventory) noexcept {
    LargestNode largest{1, 1};
    for (std::size_t node = 0; node < inventory.nodes.names.size(); ++node) {
        largest.cpu_milli = std::max(largest.cpu_milli, inventory.nodes.cpu_milli[node]);
        largest.gpu_milli =
            std::max(largest.gpu_milli, std::int64_t{whole_gpu_milli} * inventory.nodes.gpu_count[node]);
    }
    return largest;
}

namespace detail {

// Unit of parts of the largest node: exact for the default sizes, and products of two parts stay in 64 bits.
inline constexpr std::int64_t part_unit = 16'000'000;
[[nodiscard]] inline std::int64_t part(std::int64_t value, std::int64_t largest) noexcept {
    return std::min(value, 8 * largest) * part_unit / largest;
}

// 100 x (1 - numerator / denominator), truncated like the published scores.
[[nodiscard]] inline std::int64_t score_of_loss(std::int64_t numerator, std::int64_t denominator) noexcept {
    return (100 * denominator - 100 * numerator) / denominator;
}

}  // namespace detail

/// Best fit: prefers the least CPU and GPU left over. The score is `100 x (1 - (cpu left + gpu left) / 2)` in
/// parts of the largest node, truncated to whole numbers.
struct BestFit {
    static constexpr bool node_local = true;
    LargestNode largest{};
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        const auto lent = cluster.lent_to(task);
        const auto cpu =
            cluster.cpu_free_milli(node, lent) - cluster.inventory().tasks.cpu_milli[index(task)];
        const auto gpu = cluster.gpu_free_total_milli(node, lent) - cluster.gpu_milli(task);
        return detail::score_of_loss(detail::part(cpu, largest.cpu_milli) +
                                         detail::part(gpu, largest.gpu_milli),
                                     2 * detail::part_unit);
    }
};

/// Dot product: `100 x (1 - free . request / 2)` in parts of the largest node, truncated to whole numbers.
/// Prefers nodes with free amounts that line up least with the task's request, as in the published
/// comparison.
struct DotProduct {
    static constexpr bool node_local = true;
    LargestNode largest{};
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        const auto lent = cluster.lent_to(task);
        const auto cpu_free_milli = detail::part(cluster.cpu_free_milli(node, lent), largest.cpu_milli);
        const auto gpu_free = detail::part(cluster.gpu_free_total_milli(node, lent), largest.gpu_milli);
        const auto cpu = detail::part(cluster.inventory().tasks.cpu_milli[index(task)], largest.cpu_milli);
        const auto gpu = detail::part(cluster.gpu_milli(task), largest.gpu_milli);
        return detail::score_of_loss(cpu_free_milli * cpu + gpu_free * gpu,
                                     2 * detail::part_unit * detail::part_unit);
    }
};

}  // namespace gpusched::allocation
