// SPDX-License-Identifier: Apache-2.0
// Goal search: makes empty nodes, or slots for tasks of a shape, at low cost.
#pragma once

#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/rounds.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/waves.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpusched::consolidation::detail {

/// Joins the moves of an earlier plan that are still possible and vacate nodes of some weight.
/// @param moves those of tasks and nodes that still exist
void repeat_moves(Rounds& rounds, const Cluster& cluster, const AnyPolicies& policies,
                  std::span<const WantedMove> moves);

/// Counts the units of a goal: empty nodes, or slots of a shape.
class GoalCount {
  public:
    /// @param goal must outlive the count
    GoalCount(const Cluster& cluster, const Goal& goal);

    /// Whether the units are empty nodes.
    [[nodiscard]] bool of_nodes() const { return goal_.empty_nodes.has_value(); }
    /// The number of units to reach.
    [[nodiscard]] std::int64_t target() const { return goal_.empty_nodes.value_or(goal_.count.value_or(1)); }
    [[nodiscard]] bool is_reached_by(const Result& result) const {
        return result.stats.goal_after >= target();
    }
    /// Units of all nodes.
    [[nodiscard]] std::int64_t in(const Cluster& cluster) const;
    /// Units of a node.
    [[nodiscard]] std::int64_t on(const Cluster& cluster, NodeId node) const;
    /// Units of a node if it held daemons at most.
    [[nodiscard]] std::int64_t on_empty(const Cluster& cluster, NodeId node) const;
    /// Units that a node loses if the task, which must fit, moves there.
    [[nodiscard]] std::int64_t taken_by(const Cluster& cluster, TaskId task, NodeId node) const;

  private:
    [[nodiscard]] std::int64_t slots(std::int64_t gpus, std::int64_t cpu, std::int64_t memory) const;

    const Goal& goal_;
    std::vector<std::uint8_t> counts_;  // by node
};

/// Extends the plan of `found` by slots on nodes that stay in use: some tasks of a node move, in ejection
/// chains of the options' depth, to nodes on which they take fewer slots than they make. The nodes with the
/// lowest cost come first, and direct moves before nested ones.
/// @param policies whose ejection rule, acceptance and depth apply
void make_slots(const Cluster& cluster, const Scope& scope, const GoalCount& goal,
                const AnyPolicies& policies, const Options& options, Budget& budget, Result& found);

/// Returns the plan that comes closest to `options.goal`, which must be present and valid: `consolidate` with
/// a goal.
///
/// One search passes through descending prices, as `frontier` does, with the units that each node would add
/// as its weight, and ends at the first plan that reaches the goal. So the nodes with the fewest moves per
/// unit come first. That is not the proven minimum. Slots that arriving tasks take on other nodes are counted
/// from the plan itself; if some are missing, the search continues.
///
/// Slots are also made on nodes that stay in use (make_slots): in addition to that plan if it does not reach
/// the goal, and without it. The cheaper plan that reaches the goal is returned.
///
/// @param last moves of an earlier plan to continue from; null = none. They come first, as far as they are
///     possible and serve the goal
/// @return the plan; empty if the goal is already reached; else, if the goal is out of reach, the plan with
///     most units. Its weight is the number of units that its vacated nodes add, without those that moves
///     take
[[nodiscard]] Result search_goal(const Cluster& cluster, const Options& options, const Context& context,
                                 const std::vector<WantedMove>* last = nullptr);

}  // namespace gpusched::consolidation::detail
