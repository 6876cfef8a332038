// SPDX-License-Identifier: Apache-2.0
// replan(): consolidation that continues from a plan of an earlier snapshot.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace gpusched::consolidation {

/// Makes a new plan from the plan of an earlier snapshot of the same cluster, in a small part of the time of
/// `best`.
///
/// It repeats the moves of the last plan that are still possible and still vacate nodes, then searches one
/// round for further nodes. If one round from scratch gives a better plan, that one is returned. With at most
/// 1,000 nodes the complete search of the preset runs as well: the plan is worth at least 99.5 % of a new one.
///
/// With a goal, the moves of the last plan that are still possible and serve it come first, and the search
/// continues until the goal is reached. A plan from scratch is returned if it comes closer to the goal, or as
/// close at less than 90 % of the cost.
///
/// @param last the last plan; if its moves name their chains (`SearchOptions::record_chains`), their order is
///     kept; unknown names and completed moves are ignored
/// @param options as for `consolidate`
/// @return as `consolidate`, which also tells errors and determinism
[[nodiscard]] Result replan(const Cluster& cluster, const PlanSpec& last, const Options& options = {},
                            const Context& context = {});

/// A move of an earlier plan that a new plan does not make.
struct DroppedFromPlan {
    std::size_t move = 0;  ///< position in the earlier plan
    std::string reason{};  ///< about the task, in words
};

/// Compares a new plan with an earlier one.
///
/// @param last the earlier plan; of several moves of one task, the last counts
/// @param plan a plan for this cluster
/// @param options those of the new plan, as for `explain_move`
/// @return the moves of `last` that lead to another node than in `plan`, or that `plan` does not make, each
///     with the reason: the task or the node is gone, the move is made already, the task moves to another
///     node, a constraint prevents the move, or it is possible, but not in the new plan
/// @throws InvalidInput for a plan that names unknown tasks or nodes
/// O(dropped moves x cluster)
[[nodiscard]] std::vector<DroppedFromPlan> dropped_moves(const Cluster& cluster, const PlanSpec& last,
                                                         const PlanSpec& plan, const Options& options = {});

}  // namespace gpusched::consolidation
