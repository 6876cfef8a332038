// SPDX-License-Identifier: Apache-2.0
// Which nodes count for a goal of consolidation.
#pragma once

#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <vector>

namespace gpusched::consolidation {

/// The nodes that count for a goal, as `Goal` says, ascending. Nodes that are left out because of their taints are why a goal is out of
/// reach though nodes could be emptied.
/// @throws InvalidInput for a goal on a GPU model or a task that the cluster does not have
/// O(nodes); deterministic, thread-safe.
[[nodiscard]] std::vector<NodeId> goal_nodes(const Cluster& cluster, const Goal& goal);

}  // namespace gpusched::consolidation
