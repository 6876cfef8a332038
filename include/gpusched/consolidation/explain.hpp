// SPDX-License-Identifier: Apache-2.0
// Explanations: why a node stays occupied, and what prevents a move.
#pragma once

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

/// What became of a node.
enum class NodeFate : std::uint8_t {
    vacated,    ///< the plan vacates it
    empty,      ///< it holds no task but daemons to begin with
    has_fixed,  ///< a task on it must not be moved
    has_stuck,  ///< a task on it fits on no other node once the plan is done
    receives,   ///< its own tasks could leave, but the plan moves or places others there
    too_dear,  ///< moving its own tasks, or opening empty nodes for them, costs more, at the prices, than it is worth
    crowded,         ///< every task on it fits elsewhere alone, but not all of them together
    not_worthwhile,  ///< all tasks on it fit elsewhere, but their moves were not within the limits of the search
};
constexpr auto enum_names(NodeFate) {
    return name_table<NodeFate>({
        {NodeFate::vacated, "vacated"},
        {NodeFate::empty, "empty"},
        {NodeFate::has_fixed, "has_fixed"},
        {NodeFate::has_stuck, "has_stuck"},
        {NodeFate::receives, "receives"},
        {NodeFate::too_dear, "too_dear"},
        {NodeFate::crowded, "crowded"},
        {NodeFate::not_worthwhile, "not_worthwhile"},
    });
}

/// Why a task must stay.
enum class FixedBy : std::uint8_t {
    none,    ///< it may move
    daemon,  ///< it belongs to its node
    locked,
    standby,        ///< it lends its resources and must find them again
    cpu_local,      ///< it is bound to the cores next to its GPUs
    never_moves,    ///< its `how` is none
    exempt_node,    ///< the options exempt its node
    no_disruption,  ///< `max_disrupted` of its job or of the options is 0
    budget,         ///< it would be down while it moves, and a disruption budget allows no more
    core_member,    ///< its job needs it for `min_members`
};
constexpr auto enum_names(FixedBy) {
    return name_table<FixedBy>({
        {FixedBy::none, "none"},
        {FixedBy::daemon, "daemon"},
        {FixedBy::locked, "locked"},
        {FixedBy::standby, "standby"},
        {FixedBy::cpu_local, "cpu_local"},
        {FixedBy::never_moves, "never_moves"},
        {FixedBy::exempt_node, "exempt_node"},
        {FixedBy::no_disruption, "no_disruption"},
        {FixedBy::budget, "budget"},
        {FixedBy::core_member, "core_member"},
    });
}

/// Why nothing may move onto a node.
enum class ClosedBy : std::uint8_t {
    none,      ///< tasks may move onto it
    emptied,   ///< the plan vacates it
    empty,     ///< it held no task but daemons before the plan, and `open_price` is absent
    exempt,    ///< the options exempt it
    to_clear,  ///< it is to be cleared itself
    cordoned,  ///< it is unschedulable
};
constexpr auto enum_names(ClosedBy) {
    return name_table<ClosedBy>({
        {ClosedBy::none, "none"},
        {ClosedBy::emptied, "emptied"},
        {ClosedBy::empty, "empty"},
        {ClosedBy::exempt, "exempt"},
        {ClosedBy::to_clear, "to_clear"},
        {ClosedBy::cordoned, "cordoned"},
    });
}

/// The least that would have to change for a task to find a place, once the plan is done.
struct LeastChange {
    /// The node, open to moves, on which the task lacks least: GPUs and cores together, 16 cores for a GPU, then memory. Nodes where
    /// something else is in the way as well come last. none = no open node is of a kind that the task accepts.
    NodeId node = none<NodeId>;
    std::int64_t gpu_milli = 0;   ///< what it lacks there, in thousandths of a GPU; of one GPU for a fraction
    std::int64_t cpu_milli = 0;   ///< what it lacks there, in thousandths of a core
    std::int64_t memory_mib = 0;  ///< what it lacks there
    /// What else is in the way there: it would not fit even if it lacked none of these.
    Obstacle obstacle = Obstacle::none;
    /// A node on which it fits as it is, but onto which nothing may move; none = there is none.
    NodeId closed_node = none<NodeId>;
    ClosedBy closed_by = ClosedBy::none;  ///< why nothing may move onto that
};
template <class F>
constexpr void visit_fields(std::type_identity<LeastChange>, F&& field) {
    field("node", &LeastChange::node);
    field("gpu_milli", &LeastChange::gpu_milli);
    field("cpu_milli", &LeastChange::cpu_milli);
    field("memory_mib", &LeastChange::memory_mib);
    field("obstacle", &LeastChange::obstacle);
    field("closed_node", &LeastChange::closed_node);
    field("closed_by", &LeastChange::closed_by);
}

/// One of a node's own tasks that keeps it occupied.
struct Blocker {
    TaskId task = none<TaskId>;  ///< the task that stays
    FixedBy fixed_by =
        FixedBy::none;  ///< why it must stay; none for a task that may move but has nowhere to go
    /// For a task that may move but has nowhere to go: over all nodes that may receive it, the obstacle that stands in
    /// the way of most. Obstacles on nodes of its kind come before those of other kinds.
    Obstacle obstacle = Obstacle::none;
    std::size_t nodes_with_obstacle = 0;  ///< on how many nodes that obstacle stands
    std::size_t nodes_looked_at = 0;      ///< of how many
    /// For the same: nodes on which it would fit, but which the rule of the options refuses.
    std::size_t nodes_refused = 0;
    /// For the same, and for a task that fits only while the node's other tasks stay.
    LeastChange change{};
};
template <class F>
constexpr void visit_fields(std::type_identity<Blocker>, F&& field) {
    field("task", &Blocker::task);
    field("fixed_by", &Blocker::fixed_by);
    field("obstacle", &Blocker::obstacle);
    field("nodes_with_obstacle", &Blocker::nodes_with_obstacle);
    field("nodes_looked_at", &Blocker::nodes_looked_at);
    field("nodes_refused", &Blocker::nodes_refused);
    field("change", &Blocker::change);
}

/// Why a node did or did not become empty.
struct Explanation {
    NodeId node = none<NodeId>;       ///< the node that was asked about
    NodeFate fate = NodeFate::empty;  ///< what became of the node
    std::vector<Blocker> blockers;    ///< the tasks of its own that keep it occupied
    std::vector<TaskId> received;     ///< tasks that the plan moves onto the node or places there
    std::string text;                 ///< the same in words, with names
};
template <class F>
constexpr void visit_fields(std::type_identity<Explanation>, F&& field) {
    field("node", &Explanation::node);
    field("fate", &Explanation::fate);
    field("blockers", &Explanation::blockers);
    field("received", &Explanation::received);
    field("text", &Explanation::text);
}

/// Tells which task and which constraint keep `node` occupied after `plan`, and the least that would have to change.
///
/// Destinations are judged as the plan leaves them: vacated nodes receive nothing, and empty ones only with `open_price`. Tasks that the plan has
/// moved onto the node are no reason of their own. Whether all tasks of the node fit elsewhere together is tried once: those that ask for most
/// first, each on the node that it fits most tightly.
/// @param options what the plan was made with: those count that make_scope (scope.hpp) reads, the migration budget,
///     `price`, `open_price`, `objective` and `rule`
/// @throws InvalidInput for a node that does not exist or a plan that does not fit the snapshot
/// O(nodes) per task on the node, plus one copy of the cluster.
[[nodiscard]] Explanation explain(const Cluster& cluster, const Plan& plan, NodeId node,
                                  const Options& options = {});

/// The same for every node of `options.clear` that `plan` leaves occupied, in ascending order of nodes.
/// @throws InvalidInput also where `options.clear` is absent
[[nodiscard]] std::vector<Explanation> explain_clear(const Cluster& cluster, const Plan& plan,
                                                     const Options& options);


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
