// SPDX-License-Identifier: Apache-2.0
// Parts that explain(), explain_move() and order_into_waves() share.
#pragma once

#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/scope.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpusched::consolidation::detail {

[[nodiscard]] std::string in_words(FixedBy by);
[[nodiscard]] std::string in_words(ClosedBy by);

/// Why the task does not move by itself.
[[nodiscard]] FixedBy fixed_by(const Cluster& cluster, TaskId task, const Options& options);

/// The value of vacating the node by the objective of the options.
[[nodiscard]] std::int64_t weight_of(const Cluster& cluster, NodeId node, const Options& options);

/// Per node, why it receives no task, after the plan.
[[nodiscard]] std::vector<ClosedBy> closed_nodes(const Cluster& before, const Cluster& after,
                                                 const Options& options);

/// The placement rule of the options in the state after the plan.
[[nodiscard]] AnyPlacementRule rule_after(const Plan& plan, const Cluster& after, const Options& options);

/// Explains a move of `task` to `node` in the state `after`, which is unchanged on return; `text` stays empty.
[[nodiscard]] MoveExplanation explain_move(const Cluster& cluster, Cluster& after, const Scope& scope,
                                           std::span<const ClosedBy> closed, const AnyPlacementRule& rule,
                                           TaskId task, NodeId node, const Options& options);

/// The text of an explanation. `after_plan`: the state is the one after a plan.
[[nodiscard]] std::string in_words(const Cluster& cluster, const MoveExplanation& e, const Options& options,
                                   bool after_plan);

}  // namespace gpusched::consolidation::detail
