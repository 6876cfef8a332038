// SPDX-License-Identifier: Apache-2.0
// Wanted: how much of a goal there is, on a node and in all.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/consolidation/goal_nodes.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace gpusched::consolidation::detail {

/// What is counted: empty nodes, or slots of a shape.
class Wanted {
  public:
    Wanted(const Cluster& cluster, const Goal& goal) : goal_(goal), counts_(cluster.node_slots()) {
        for (const auto node : goal_nodes(cluster, goal)) counts_[index(node)] = 1;
    }
    /// How many there are to be.
    [[nodiscard]] std::int64_t count() const { return goal_.empty_nodes.value_or(goal_.count.value_or(1)); }
    /// How many the node has.
    [[nodiscard]] std::int64_t on(const Cluster& cluster, NodeId node) const {
        if (counts_[index(node)] == 0) return 0;
        if (is_nodes()) return cluster.occupants(node) == 0 ? 1 : 0;
        return slots(gpu_count(cluster.idle_gpus(node)), cluster.cpu_free_milli(node),
                     cluster.memory_free_mib(node));
    }
    /// How many it would have if it held daemons alone.
    [[nodiscard]] std::int64_t on_empty(const Cluster& cluster, NodeId node) const {
        if (counts_[index(node)] == 0) return 0;
        if (is_nodes()) return 1;
        const auto& t = cluster.inventory().tasks;
        auto taken = static_cast<GpuMask>(cluster.healthy_gpus(node));
        auto cpu = cluster.cpu_free_milli(node), memory = cluster.memory_free_mib(node);
        for (const auto task : cluster.tasks_on(node)) {
            if (t.daemon[index(task)]) {
                taken &= static_cast<GpuMask>(~cluster.gpus_of(task));
                continue;
            }
            cpu += t.cpu_milli[index(task)];
            memory += t.memory_mib[index(task)];
        }
        return slots(gpu_count(taken), cpu, memory);
    }
    [[nodiscard]] std::int64_t in(const Cluster& cluster) const {
        std::int64_t sum = 0;
        for (const auto node : cluster.nodes()) sum += on(cluster, node);
        return sum;
    }

    /// How many fewer the node would have with one more task, which must fit there.
    [[nodiscard]] std::int64_t taken_by(const Cluster& cluster, TaskId task, NodeId node) const {
        if (counts_[index(node)] == 0) return 0;
        const auto idle = cluster.idle_gpus(node);
        const auto cpu = cluster.cpu_free_milli(node), memory = cluster.memory_free_mib(node);
        const auto gpus = allocation::pick_gpus(allocation::TightestGpu{}, cluster, task, node);
        const auto& t = cluster.inventory().tasks;
        // Cores that are lent to it were not free before.
        const auto cpu_after =
            std::min(cpu, cluster.cpu_free_milli(node, cluster.lent_to(task)) - t.cpu_milli[index(task)]);
        return slots(gpu_count(idle), cpu, memory) - slots(gpu_count(static_cast<GpuMask>(idle & ~gpus)),
                                                           cpu_after, memory - t.memory_mib[index(task)]);
    }

    /// Empty nodes, not slots?
    [[nodiscard]] bool is_nodes() const { return goal_.empty_nodes.has_value(); }

  private:
    [[nodiscard]] std::int64_t slots(std::int64_t gpus, std::int64_t cpu, std::int64_t memory) const {
        auto most = std::numeric_limits<std::int64_t>::max();
        const auto limit = [&](std::int64_t free, std::int64_t each) {
            if (each > 0) most = std::min(most, std::max<std::int64_t>(0, free) / each);
        };
        limit(gpus, goal_.slots->gpu_count);
        limit(cpu, goal_.slots->cpu_milli);
        limit(memory, goal_.slots->memory_mib);
        return most;
    }

    const Goal& goal_;
    std::vector<std::uint8_t> counts_;  // by node
};

[[nodiscard]] inline bool reached(const Result& found, const Wanted& wanted) {
    return found.stats.goal_after >= wanted.count();
}

}  // namespace gpusched::consolidation::detail
