// Eviction history: volatile nodes for HP tasks, stable nodes for spot tasks.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <cstdint>

namespace GPUSCHED_NAMESPACE::allocation {

/// ASI's third criterion: spot (LP) tasks go to the node with the fewest evictions, all others to the one with the
/// most, so that preemptions gather on nodes that are volatile anyway.
///
/// A node's history is what its present tasks remember: the sum of their `eviction_count`. O(tasks on the node).
struct EvictionHistory {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        std::int64_t evictions = 0;
        for (const auto neighbour : cluster.tasks_on(node))
            evictions += cluster.inventory().tasks.eviction_count[index(neighbour)];
        return cluster.may_borrow(task) ? -evictions : evictions;
    }
};

}  // namespace GPUSCHED_NAMESPACE::allocation
