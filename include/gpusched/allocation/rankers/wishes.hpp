// SPDX-License-Identifier: Apache-2.0
// Wishes: rankers for what a task would like but does not insist on.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <cstdint>
#include <vector>

namespace gpusched::allocation {

/// Where the task's network wish (`network_affinity`, also a required one) is met best: how many other members of its
/// job run in the node's domain of the wished level. 0 everywhere for tasks without a job or such a wish.
///
/// A node of unknown position is a domain of its own. O(tasks) per placement; asked node by node, for each of them.
struct NetworkWish {
    /// For one task: members by domain.
    struct Members {
        Level level = node_level;
        std::vector<std::int64_t> count{};  ///< by DomainId; empty = no wish
        std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const;
    };
    [[nodiscard]] Members for_task(const Cluster& cluster, TaskId task) const;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// Where the task's hardware wish (`hardware_affinity`, best effort or guaranteed) is met best.
///
/// With a NUMA wish 2 where the GPUs that the task could take now include enough of one NUMA node, 1 where of one
/// socket; with a socket wish 1 where of one socket. 0 on all other nodes, on nodes of unknown hardware, and for tasks
/// of less than two GPUs or without such a wish. Which GPUs it then gets is up to the picker: see ByWish. O(1).
struct HardwareWish {
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

}  // namespace gpusched::allocation
