// SPDX-License-Identifier: Apache-2.0
// Eviction history: volatile nodes for HP tasks, stable nodes for spot tasks.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <cstdint>

namespace gpusched::allocation {

/// ASI's third criterion: spot (LP) tasks go to the node with the fewest evictions, all others to the one
/// with the most, so that preemptions gather on nodes that are volatile anyway.
///
/// A node's history is its own `NodeSpec::eviction_count`, independent of the tasks that run there now:
/// evictions of those tasks on other nodes do not count. O(1).
struct EvictionHistory {
    static constexpr bool node_local = true;
    /// @param spot_task whether the task to be placed is a spot task
    static std::int64_t rank(const Cluster& cluster, bool spot_task, NodeId node) noexcept {
        const auto evictions = cluster.inventory().nodes.eviction_count[index(node)];
        return spot_task ? -evictions : evictions;
    }
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        return rank(cluster, cluster.may_borrow(task), node);
    }
};

}  // namespace gpusched::allocation
