// SPDX-License-Identifier: Apache-2.0
// Homogeneous co-location: HP with HP, spot on spot-dedicated nodes.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <cstdint>

namespace gpusched::allocation {

/// ASI's second criterion: keep HP and spot (LP) tasks on different nodes.
///
/// Spot tasks: 1 on nodes where only spot tasks run, 0 on empty nodes, -1 where others run. All other tasks: 1 where
/// others run, 0 on empty nodes, -1 on nodes of spot tasks alone. Daemons do not count. O(tasks on the node).
struct Homogeneous {
    static constexpr bool node_local = true;
    /// @param spot_task is it a spot task that is to be placed?
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
