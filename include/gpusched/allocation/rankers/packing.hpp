// SPDX-License-Identifier: Apache-2.0
// Packing: prefers the node with the least idle GPU capacity.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <cstdint>

namespace gpusched::allocation {

/// ASI's first criterion: prefers the node with the least idle GPU capacity, so that emptier nodes stay
/// whole.
///
/// Capacity is idle if the task itself could take it; for LP tasks this includes capacity that Standby tasks
/// lend. O(GPUs of the node).
struct Packing {
    static constexpr bool node_local = true;
    /// @param lent whether the task may take capacity that Standby tasks lend
    static std::int64_t rank(const Cluster& cluster, Lent lent, NodeId node) noexcept {
        return -cluster.gpu_free_total_milli(node, lent);
    }
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        return rank(cluster, cluster.lent_to(task), node);
    }
};

}  // namespace gpusched::allocation
