// SPDX-License-Identifier: Apache-2.0
// Functions that explanations, blockers() and drain_order() share.
#pragma once

#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/core/errors.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::consolidation::detail {

/// @param node that is closed
[[nodiscard]] std::string closed_text(const Inventory& inventory, ClosedBy by, NodeId node);

/// Whether the task is known to have no controller that would recreate it.
[[nodiscard]] bool has_no_controller(const Inventory& inventory, TaskId task);

/// The label with the name of a node.
inline constexpr const char* hostname = "kubernetes.io/hostname";
/// Says what binds the task to its node if no other node passes the names of nodes and the volumes that it asks for;
/// empty otherwise.
[[nodiscard]] std::string bound_by(const Cluster& cluster, TaskId task);

/// Returns why the task is fixed.
/// @param movable whether the scope of a plan has it as movable
[[nodiscard]] FixedBy fixed_by(const Cluster& cluster, TaskId task, const Options& options, bool movable);
/// Says why the task is fixed, with the names of budgets and volumes.
[[nodiscard]] std::string fixed_text(const Cluster& cluster, TaskId task, FixedBy by);

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
[[nodiscard]] std::string fate_text(const Cluster& cluster, const MoveExplanation& e, const Options& options,
                                    bool after_plan);
/// Returns the text of an explanation.
[[nodiscard]] std::string move_text(const Cluster& cluster, const MoveExplanation& e, const Options& options,
                                    bool after_plan);

}  // namespace gpusched::consolidation::detail
