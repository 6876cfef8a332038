// SPDX-License-Identifier: Apache-2.0
// Homogeneous co-location: HP with HP, spot on spot-dedicated nodes.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <cstdint>

namespace gpusched::allocation {

/// ASI's second criterion: keeps HP and spot (LP) tasks on different nodes.
///
/// Spot tasks: 1 on nodes with only spot tasks, 0 on empty nodes, -1 on nodes with other tasks. All other
/// tasks: 1 on nodes with other tasks, 0 on empty nodes, -1 on nodes with only spot tasks. Daemons do not
/// count. O(tasks on the node).
struct Homogeneous {
    static constexpr bool node_local = true;
    /// @param spot_task whether the task to be placed is a spot task
    static std::int64_t rank(const Cluster& cluster, bool spot_task, NodeId node) noexcept {
        const auto& t = cluster.inventory().tasks;
        bool spot = false, others = false;
        for (const auto neighbour : cluster.tasks_on(node)) {
            if (t.daemon[index(neighbour)]) continue;
            (cluster.may_borrow(neighbour) ? spot : others) = true;
        }
        if (!spot && !others) return 0;
        return spot_task == others ? -1 : 1;
    }
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        return rank(cluster, cluster.may_borrow(task), node);
    }
};

}  // namespace gpusched::allocation
