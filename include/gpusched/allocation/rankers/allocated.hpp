// Least and most allocated: Kubernetes' spreading and bin-packing scores.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <cstdint>

namespace gpusched::allocation {

/// Kubernetes' LeastAllocated: the node that would have the largest free part of CPU, memory and GPUs.
///
/// The mean over the resources that the node has of `100 x free after placing / capacity`, each and the mean rounded
/// down as Kubernetes does; 0 .. 100.
struct LeastAllocated {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        const auto& n = cluster.inventory().nodes;
        const auto& t = cluster.inventory().tasks;
        const bool borrow = cluster.may_borrow(task);
        std::int64_t sum = 0, resources = 0;
        const auto add = [&](std::int64_t free, std::int64_t request, std::int64_t capacity) {
            if (capacity == 0) return;
            sum += 100 * (free - request) / capacity;
            ++resources;
        };
        add(cluster.cpu_free_milli(node, borrow), t.cpu_milli[index(task)], n.cpu_milli[index(node)]);
        add(cluster.memory_free_mib(node), t.memory_mib[index(task)], n.memory_mib[index(node)]);
        add(cluster.gpu_free_milli(node, borrow), cluster.gpu_milli(task),
            std::int64_t{whole_gpu_milli} * gpu_count(cluster.healthy_gpus(node)));
        return resources == 0 ? 0 : sum / resources;
    }
};

/// Kubernetes' MostAllocated: the mean over the resources that the node has of `100 x used after placing /
/// capacity`, rounded down likewise; 0 .. 100.
struct MostAllocated {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        const auto& n = cluster.inventory().nodes;
        const auto& t = cluster.inventory().tasks;
        const bool borrow = cluster.may_borrow(task);
        std::int64_t sum = 0, resources = 0;
        const auto add = [&](std::int64_t free, std::int64_t request, std::int64_t capacity) {
            if (capacity == 0) return;
            sum += 100 * (capacity - free + request) / capacity;
            ++resources;
        };
        add(cluster.cpu_free_milli(node, borrow), t.cpu_milli[index(task)], n.cpu_milli[index(node)]);
        add(cluster.memory_free_mib(node), t.memory_mib[index(task)], n.memory_mib[index(node)]);
        add(cluster.gpu_free_milli(node, borrow), cluster.gpu_milli(task),
            std::int64_t{whole_gpu_milli} * gpu_count(cluster.healthy_gpus(node)));
        return resources == 0 ? 0 : sum / resources;
    }
};

}  // namespace gpusched::allocation
