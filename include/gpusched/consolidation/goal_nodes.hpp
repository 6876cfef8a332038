// Which nodes count for a goal of consolidation.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/goal.hpp>

#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation {

/// The nodes that count for a goal, as `Goal` says, ascending. Nodes that are left out because of their taints are why a goal is out of
/// reach though nodes could be emptied.
/// @throws InvalidInput for a goal on a GPU model or a task that the cluster does not have
/// O(nodes); deterministic, thread-safe.
[[nodiscard]] std::vector<NodeId> goal_nodes(const Cluster& cluster, const Goal& goal);

}  // namespace GPUSCHED_NAMESPACE::consolidation

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/consolidation/impl/goal_nodes.ipp>
#endif
