// Explain: why did this node not become empty?
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/plan.hpp>

#include <string>
#include <vector>

namespace gpusched::consolidation {

/// What became of a node.
enum class NodeFate : std::uint8_t {
    vacated,    ///< the plan vacates it
    empty,      ///< it holds no task but daemons to begin with
    has_fixed,  ///< a task on it must not be moved
    has_stuck,  ///< a task on it fits on no other node once the plan is done
    not_worthwhile,  ///< every task on it fits elsewhere one by one, but not all together within the search's limits
};

/// One task that keeps a node occupied.
struct Blocker {
    TaskId task = none<TaskId>;
    /// Why the task must stay: "locked", "standby", "cpu_local", "core member", "exempt node", or empty for a task
    /// that may move but has nowhere to go.
    std::string reason;
    /// For a task with nowhere to go: over all nodes that may receive it, the obstacle that stands in the way of
    /// most, and how many nodes that is.
    Obstacle obstacle = Obstacle::none;
    std::size_t nodes_with_obstacle = 0;
    std::size_t nodes_looked_at = 0;
};

struct Explanation {
    NodeId node = none<NodeId>;
    NodeFate fate = NodeFate::empty;
    std::vector<Blocker> blockers;
    std::string text;  ///< the same in words, with names
};

/// Tells which task and which constraint keep `node` occupied after `plan`.
///
/// Destinations are judged as the plan leaves them: empty and vacated nodes receive nothing.
/// @throws InvalidInput for a node that does not exist or a plan that does not fit the snapshot
/// O(nodes) per task on the node, plus one copy of the cluster.
[[nodiscard]] Explanation explain(const Cluster& cluster, const Plan& plan, NodeId node,
                                  const Options& options = {});

[[nodiscard]] const char* to_string(NodeFate fate) noexcept;

}  // namespace gpusched::consolidation

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/consolidation/impl/explain.ipp>
#endif
