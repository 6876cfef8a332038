// SPDX-License-Identifier: Apache-2.0
// Explanations: why a node stays occupied, and what prevents a move.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::consolidation {

/// The outcome of a plan for a node.
enum class NodeFate : std::uint8_t {
    vacated,         ///< the plan vacates it
    empty,           ///< it held daemons at most before the plan
    has_fixed,       ///< a task on it must not be moved
    has_stuck,       ///< a task on it fits on no other node after the plan
    receives,        ///< its own tasks could leave, but the plan moves or places others there
    too_costly,      ///< moving its tasks, or opening empty nodes for them, costs more than its weight
    crowded,         ///< every task on it fits elsewhere alone, but not all of them together
    not_worthwhile,  ///< all tasks on it fit elsewhere, but their moves exceed the limits of the search
};

/// Why a task must stay.
enum class FixedBy : std::uint8_t {
    none,    ///< it may move
    daemon,  ///< it belongs to its node
    locked,
    standby,        ///< it lends its resources and needs them back in the same place
    cpu_local,      ///< it is bound to the cores next to its GPUs
    no_controller,  ///< its `how` is none, and it has no controller that would recreate it
    never_moves,    ///< its `how` is none for another reason
    bound_to_node,  ///< no other node passes its volumes or the names of nodes that it asks for
    exempt_node,    ///< the options exempt its node
    no_disruption,  ///< `max_disrupted` of its job or of the options is 0
    budget,         ///< it would be down while it moves, and a disruption budget allows no more
    core_member,    ///< its job needs it for `min_members`
};

/// Why nothing may move onto a node.
enum class ClosedBy : std::uint8_t {
    none,       ///< tasks may move onto it
    emptied,    ///< the plan vacates it
    empty,      ///< it held daemons at most before the plan, and `open_price` is absent
    exempt,     ///< the options exempt it
    to_clear,   ///< it is to be cleared itself
    cordoned,   ///< it is unschedulable
    not_ready,  ///< it is unschedulable, because it is not ready
};

/// The smallest change by which a task would find a place after the plan.
struct LeastChange {
    /// The open node on which the task lacks least: GPUs and cores together, 16 cores for a GPU, then memory.
    /// Nodes with another obstacle come last. none = the task accepts no open node.
    NodeId node = none<NodeId>;
    std::int64_t gpu_milli = 0;   ///< lacking thousandths of a GPU; of one GPU for a fraction
    std::int64_t cpu_milli = 0;   ///< lacking thousandths of a core
    std::int64_t memory_mib = 0;  ///< lacking MiB of memory
    /// Another obstacle on that node, even if nothing were lacking.
    Obstacle obstacle = Obstacle::none;
    /// A node on which the task fits, but onto which nothing may move; none = no such node.
    NodeId closed_node = none<NodeId>;
    ClosedBy closed_by = ClosedBy::none;  ///< why nothing may move onto `closed_node`
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

/// A task that keeps its node occupied.
struct Blocker {
    TaskId task = none<TaskId>;        ///< the task that stays
    FixedBy fixed_by = FixedBy::none;  ///< why it must stay; none for a task that may move but has no place
    /// For a task without a place: the most frequent first obstacle over all nodes that may receive it.
    /// Obstacles on nodes that it accepts come before those on other nodes.
    Obstacle obstacle = Obstacle::none;
    std::size_t nodes_with_obstacle = 0;  ///< number of nodes with that obstacle
    std::size_t nodes_looked_at = 0;      ///< number of nodes considered
    /// For a task without a place: nodes on which it would fit, but which the rule of the options rejects.
    std::size_t nodes_refused = 0;
    /// For a task without a place, alone or after the node's other tasks have left.
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
    NodeId node = none<NodeId>;       ///< the node in question
    NodeFate fate = NodeFate::empty;  ///< the outcome for the node
    std::vector<Blocker> blockers{};  ///< its own tasks that keep it occupied
    std::vector<TaskId> received{};   ///< tasks that the plan moves onto the node or places there
    std::string text{};               ///< the same in words, with names
};
template <class F>
constexpr void visit_fields(std::type_identity<Explanation>, F&& field) {
    field("node", &Explanation::node);
    field("fate", &Explanation::fate);
    field("blockers", &Explanation::blockers);
    field("received", &Explanation::received);
    field("text", &Explanation::text);
}

/// Explains which task and which constraint keep `node` occupied after `plan`, and the smallest change that
/// would help.
///
/// Destinations are judged as the plan leaves them: vacated nodes receive nothing, and empty nodes only with
/// `open_price`. Tasks that the plan has moved onto the node are no reason of their own. Whether all tasks
/// fit elsewhere together is tried once: the largest requests first, each on the tightest node.
/// @param options those of the plan: the ones that make_scope (scope.hpp) reads, the migration budget,
///     `price`, `open_price`, `objective` and `rule`
/// @throws InvalidInput for an unknown node or a plan that does not fit the snapshot
/// O(nodes) per task on the node, plus one copy of the cluster.
[[nodiscard]] Explanation explain(const Cluster& cluster, const Plan& plan, NodeId node,
                                  const Options& options = {});

/// Explains every node of `options.clear` that `plan` leaves occupied, in ascending order of nodes.
/// @throws InvalidInput as explain(), and if `options.clear` is absent
[[nodiscard]] std::vector<Explanation> explain_clear(const Cluster& cluster, const Plan& plan,
                                                     const Options& options);

/// The outcome of a hypothetical move.
enum class MoveFate : std::uint8_t {
    possible,     ///< nothing prevents it
    is_there,     ///< the task is on that node after the plan
    not_placed,   ///< the task does not run before the plan, or the plan evicts it
    task_stays,   ///< the task must not be moved; see `fixed_by`
    node_closed,  ///< the node receives nothing; see `closed_by`
    obstacle,     ///< a constraint prevents it; see `obstacle` and `victims`
    refused,      ///< the rule of the options rejects it
    no_turn,      ///< of `order_into_waves` only: possible after the other moves, but it fits into no wave
};

/// The obstacles and effects of one move.
struct MoveExplanation {
    TaskId task = none<TaskId>;           ///< the task to move
    NodeId from_node = none<NodeId>;      ///< the task's node after the plan
    NodeId to_node = none<NodeId>;        ///< the destination in question
    MoveFate fate = MoveFate::possible;   ///< the outcome of the move
    FixedBy fixed_by = FixedBy::none;     ///< why the task must stay
    ClosedBy closed_by = ClosedBy::none;  ///< why the node receives nothing
    Obstacle obstacle = Obstacle::none;   ///< the first constraint that prevents the move
    /// With an obstacle: tasks that must leave `to_node` for the task. It is the smallest set of tasks that
    /// are easier to place than the task itself (fewer GPUs, or as many GPUs with fewer cores); empty if no
    /// such set suffices. With more than 20,000 sets of that size, it is a set from which no task can be left
    /// out. Whether these tasks find another place is not examined.
    std::vector<TaskId> victims{};
    /// Added cost of the plan; negative for a task that returns to its first node and GPUs.
    std::int64_t cost = 0;
    /// Added weight of empty nodes: the weight of `from_node` if the task is the last one there, minus the
    /// weight of `to_node` if that node would otherwise hold daemons at most after the plan.
    std::int64_t weight = 0;
    /// Added value: 1000 x `weight` - `price` x `cost`. A node that was empty before the plan counts
    /// `open_price` x its weight.
    std::int64_t value_milli = 0;
    std::string text{};  ///< the same in words, with names
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

/// Explains the first obstacle of a move and its effect on the plan's value: the price of a move that a plan
/// does not make.
///
/// The task is examined first, then what never changes for it (GPU model, selector, affinity, taints,
/// volumes), the node, the other constraints in the order of `Obstacle`, and the rule.
/// Cost, weight and value are those of this move alone, whether it is possible or not; moving its victims is
/// not counted.
///
/// @param options those of the plan, as in `explain`
/// @param plan the move is made after this plan; none = in the cluster as it is
/// @throws InvalidInput for an unknown task or node, or a plan that does not fit the snapshot
/// O(tasks on both nodes), plus one copy of the cluster.
[[nodiscard]] MoveExplanation explain_move(const Cluster& cluster, TaskId task, NodeId node,
                                           const Options& options = {}, const Plan& plan = {});

}  // namespace gpusched::consolidation
