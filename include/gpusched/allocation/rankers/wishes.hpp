// SPDX-License-Identifier: Apache-2.0
// Wishes: rankers for the optional wishes of a task.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <cstdint>
#include <vector>

namespace gpusched::allocation {

/// Prefers nodes that meet the task's network wish (`network_affinity`, also a required one) best. The score
/// is the number of other members of its job in the node's domain of the wished level. 0 everywhere for tasks
/// without a job or such a wish.
///
/// A node of unknown position is a domain of its own. O(tasks) per placement, or for every node if it is
/// called node by node.
struct NetworkWish {
    /// Members by domain, for one task.
    struct Members {
        Level level = node_level;
        std::vector<std::int64_t> count{};  ///< by DomainId; empty = no wish
        std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const;
    };
    [[nodiscard]] Members for_task(const Cluster& cluster, TaskId task) const;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// Prefers nodes that meet the task's hardware wish (`hardware_affinity`, best effort or guaranteed) best.
///
/// NUMA wish: 2 if the GPUs that the task could take now include enough of one NUMA node, 1 if enough of one
/// socket. Socket wish: 1 if enough of one socket. The score is 0 on all other nodes, on nodes of unknown
/// hardware, and for tasks of less than two GPUs or without such a wish. The picker decides which GPUs it
/// gets: see ByWish. O(1).
struct HardwareWish {
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

}  // namespace gpusched::allocation
