// SPDX-License-Identifier: Apache-2.0
// Least and most allocated: Kubernetes' spreading and bin-packing scores.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <cstdint>

namespace gpusched::allocation {

namespace detail {

/// The mean of `percent(free after placing, capacity)` over the resources that the node has. Each part and
/// the mean are rounded down, as in Kubernetes.
template <class Percent>
[[nodiscard]] std::int64_t mean_percent(const Cluster& cluster, TaskId task, NodeId node,
                                        Percent&& percent) noexcept {
    const auto& n = cluster.inventory().nodes;
    const auto& t = cluster.inventory().tasks;
    const auto lent = cluster.lent_to(task);
    std::int64_t sum = 0, resources = 0;
    const auto add = [&](std::int64_t left, std::int64_t capacity) {
        if (capacity == 0) return;
        sum += percent(left, capacity);
        ++resources;
    };
    add(cluster.cpu_free_milli(node, lent) - t.cpu_milli[index(task)], n.cpu_milli[index(node)]);
    add(cluster.memory_free_mib(node) - t.memory_mib[index(task)], n.memory_mib[index(node)]);
    add(cluster.gpu_free_total_milli(node, lent) - cluster.gpu_milli(task),
        std::int64_t{whole_gpu_milli} * gpu_count(cluster.healthy_gpus(node)));
    return resources == 0 ? 0 : sum / resources;
}

}  // namespace detail

/// Kubernetes' LeastAllocated: prefers the node that would have the largest free part of CPU, memory and
/// GPUs.
///
/// The mean of `100 x free after placing / capacity` over the resources that the node has, 0 to 100. Each
/// part and the mean are rounded down, as in Kubernetes.
struct LeastAllocated {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        return detail::mean_percent(cluster, task, node, [](std::int64_t left, std::int64_t capacity) {
            return 100 * left / capacity;
        });
    }
};

/// Kubernetes' MostAllocated: the mean of `100 x used after placing / capacity` over the resources that the
/// node has, rounded down in the same way, 0 to 100.
struct MostAllocated {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        return detail::mean_percent(cluster, task, node, [](std::int64_t left, std::int64_t capacity) {
            return 100 * (capacity - left) / capacity;
        });
    }
};

}  // namespace gpusched::allocation
