// SPDX-License-Identifier: Apache-2.0
// Functions that explanations, blockers() and drain_order() share.
#pragma once

#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/core/errors.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpusched::consolidation::detail {

[[nodiscard]] std::string in_words(ClosedBy by);

/// Whether the task is known to have no controller that would recreate it.
[[nodiscard]] bool has_no_controller(const Inventory& inventory, TaskId task);

/// Returns why the task is fixed.
[[nodiscard]] FixedBy fixed_by(const Cluster& cluster, TaskId task, const Options& options);

/// Explains each of the nodes without a plan.
[[nodiscard]] std::vector<Explanation> explain_each(const Cluster& cluster, const std::vector<NodeId>& nodes,
                                                    const Options& options);

/// Returns the weight of the node by the objective of the options.
[[nodiscard]] std::int64_t weight_of(const Cluster& cluster, NodeId node, const Options& options);

/// Returns by NodeId why the node receives no task after the plan.
[[nodiscard]] std::vector<ClosedBy> closed_nodes(const Cluster& before, const Cluster& after,
                                                 const Options& options);

/// Returns the placement rule of the options in the state after the plan.
[[nodiscard]] AnyPlacementRule rule_after(const Plan& plan, const Cluster& after, const Options& options);

/// Explains a move of `task` to `node` in the state `after`, which is unchanged on return; `text` stays
/// empty.
/// @param closed by NodeId, from `closed_nodes`
/// @param rule in the state of `after`
[[nodiscard]] MoveExplanation explain_move(const Cluster& cluster, Cluster& after, const Scope& scope,
                                           std::span<const ClosedBy> closed, const AnyPlacementRule& rule,
                                           TaskId task, NodeId node, const Options& options);

/// Returns what becomes of the move, without the name of the task, such as "is on node 'n' already".
/// @param after_plan whether there is a plan
[[nodiscard]] std::string fate_in_words(const Cluster& cluster, const MoveExplanation& e,
                                        const Options& options, bool after_plan);
/// Returns the text of an explanation.
[[nodiscard]] std::string in_words(const Cluster& cluster, const MoveExplanation& e, const Options& options,
                                   bool after_plan);

}  // namespace gpusched::consolidation::detail
