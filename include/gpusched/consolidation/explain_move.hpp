// SPDX-License-Identifier: Apache-2.0
// Explain a move: could this task go to that node, what would it cost, and who is in the way?
#pragma once

#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::consolidation {

/// What a move meets.
enum class MoveFate : std::uint8_t {
    possible,     ///< nothing is in the way
    is_there,     ///< the task is on that node, once the plan is done
    not_placed,   ///< the task runs nowhere before the plan, or the plan evicts it
    task_stays,   ///< the task must not be moved; see `fixed_by`
    node_closed,  ///< the node receives nothing: see `closed_by`
    obstacle,     ///< a constraint is in the way; see `obstacle` and `victims`
    refused,      ///< the rule of the options refuses it
    no_turn,  ///< of `order_into_waves` only: nothing is in the way once the others are made, but it found no turn
};
constexpr auto enum_names(MoveFate) {
    return name_table<MoveFate>({
        {MoveFate::possible, "possible"},
        {MoveFate::is_there, "is_there"},
        {MoveFate::not_placed, "not_placed"},
        {MoveFate::task_stays, "task_stays"},
        {MoveFate::node_closed, "node_closed"},
        {MoveFate::obstacle, "obstacle"},
        {MoveFate::refused, "refused"},
        {MoveFate::no_turn, "no_turn"},
    });
}

/// What one move would meet, and what it would change.
struct MoveExplanation {
    TaskId task = none<TaskId>;           ///< the task to move
    NodeId from_node = none<NodeId>;      ///< where the task is, once the plan is done
    NodeId to_node = none<NodeId>;        ///< the node that was asked for
    MoveFate fate = MoveFate::possible;   ///< what the move would meet
    FixedBy fixed_by = FixedBy::none;     ///< why the task must stay
    ClosedBy closed_by = ClosedBy::none;  ///< why the node receives nothing
    Obstacle obstacle = Obstacle::none;   ///< the first constraint in the way
    /// Where there is an obstacle: tasks that must leave `to_node` so that the task can come. It is the smallest set of tasks that are easier
    /// to place than the task itself (fewer GPUs, or as many with fewer cores); empty where no such set suffices. Where there are more than
    /// 20,000 sets of that size, it is a set of which no task can be left out. Whether these tasks find another place is not examined.
    std::vector<TaskId> victims;
    /// What the move adds to the cost of the plan; negative for a task that goes back to its first node and GPUs.
    std::int64_t cost = 0;
    /// What the move adds to the weight of the empty nodes: plus the weight of `from_node` where the task is the last one there, minus the
    /// weight of `to_node` where that node would otherwise hold daemons alone when the plan is done.
    std::int64_t weight = 0;
    /// 1000 x `weight` - `price` x `cost`: what it adds to the value. A node that was empty before the plan counts `open_price` x its weight.
    std::int64_t value_milli = 0;
    std::string text;  ///< the same in words, with names
};
template <class F>
constexpr void visit_fields(std::type_identity<MoveExplanation>, F&& field) {
    field("task", &MoveExplanation::task);
    field("from_node", &MoveExplanation::from_node);
    field("to_node", &MoveExplanation::to_node);
    field("fate", &MoveExplanation::fate);
    field("fixed_by", &MoveExplanation::fixed_by);
    field("closed_by", &MoveExplanation::closed_by);
    field("obstacle", &MoveExplanation::obstacle);
    field("victims", &MoveExplanation::victims);
    field("cost", &MoveExplanation::cost);
    field("weight", &MoveExplanation::weight);
    field("value_milli", &MoveExplanation::value_milli);
    field("text", &MoveExplanation::text);
}

/// Names the first obstacle of a move and what the move would change: the price of a move that a plan does not make.
///
/// The task is examined first, then the node, then the constraints in the order of `Obstacle`, last the rule; the first obstacle is named. Cost,
/// weight and value are those of this move alone, whether it is possible or not; moving its victims is not counted.
///
/// @param options what the plan was made with, as in `explain`
/// @param plan the move is made when this plan is done; none = in the cluster as it is
/// @throws InvalidInput for a task or node that does not exist, or a plan that does not fit the snapshot
/// O(tasks on both nodes), plus one copy of the cluster.
[[nodiscard]] MoveExplanation explain_move(const Cluster& cluster, TaskId task, NodeId node,
                                           const Options& options = {}, const Plan& plan = {});

}  // namespace gpusched::consolidation
