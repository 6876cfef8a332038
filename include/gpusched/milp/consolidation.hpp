// SPDX-License-Identifier: Apache-2.0
// Consolidation as a model: onto how few nodes fit the running tasks, with how few moves?
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/milp/model.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace gpusched::milp {

/// How tasks are written down.
enum class ConsolidationForm : std::uint8_t {
    plain,    ///< F1: a binary per task and node
    classes,  ///< F3: tasks alike are counted; locked ones become smaller nodes
};
constexpr auto enum_names(ConsolidationForm) {
    return name_table<ConsolidationForm>({
        {ConsolidationForm::plain, "plain"},
        {ConsolidationForm::classes, "classes"},
    });
}

/// How tasks that stay are written down in the plain form.
enum class LockForm : std::uint8_t {
    bounds,  ///< columns fixed by their bounds
    rows,    ///< a row each
};
constexpr auto enum_names(LockForm) {
    return name_table<LockForm>({
        {LockForm::bounds, "bounds"},
        {LockForm::rows, "rows"},
    });
}

/// What is minimised.
enum class ConsolidationGoal : std::uint8_t {
    nodes_then_moves,  ///< occupied nodes, then moves, in one objective: a move weighs 1 / (tasks + 1)
    nodes,             ///< occupied nodes
    moves,             ///< moves: for `vacated_gpus_at_least`
};
constexpr auto enum_names(ConsolidationGoal) {
    return name_table<ConsolidationGoal>({
        {ConsolidationGoal::nodes_then_moves, "nodes_then_moves"},
        {ConsolidationGoal::nodes, "nodes"},
        {ConsolidationGoal::moves, "moves"},
    });
}

/// How a consolidation model is built.
struct ConsolidationOptions {
    ConsolidationForm form = ConsolidationForm::plain;             ///< F1 or F3
    LockForm locks = LockForm::bounds;                             ///< how tasks that stay are written down
    ConsolidationGoal goal = ConsolidationGoal::nodes_then_moves;  ///< what is minimised
    /// Rows for memory, where any task asks for some. Off: memory is relaxed.
    bool memory = true;
    /// Most moves; absent = any number.
    std::optional<std::int64_t> max_moves{};
    /// At least so many nodes stay occupied: a bound proved elsewhere, such as `consolidation::bound`, as a
    /// row.
    std::optional<std::int64_t> occupied_at_least{};
    /// At least so many GPUs that work are on nodes that become vacant, as a row.
    std::optional<std::int64_t> vacated_gpus_at_least{};
};
template <class F>
constexpr void visit_fields(std::type_identity<ConsolidationOptions>, F&& field) {
    field("form", &ConsolidationOptions::form);
    field("locks", &ConsolidationOptions::locks);
    field("goal", &ConsolidationOptions::goal);
    field("memory", &ConsolidationOptions::memory);
    field("max_moves", &ConsolidationOptions::max_moves, at_least(0));
    field("occupied_at_least", &ConsolidationOptions::occupied_at_least);
    field("vacated_gpus_at_least", &ConsolidationOptions::vacated_gpus_at_least);
}

/// A consolidation model, with what its columns stand for.
struct ConsolidationModel : Model {
    ConsolidationForm form = ConsolidationForm::plain;
    std::vector<NodeId> nodes{};  ///< nodes that tasks run on: the j of the index maps `x(k, j)` and `y(j)`
    std::vector<std::vector<TaskId>> classes{};  ///< the k of `x`: tasks alike; one each in the plain form
    std::vector<TaskId> fixed{};                 ///< tasks that are no part of `classes`, because they stay
    std::size_t task_count = 0;
    std::vector<NodeId> home{};   ///< per task: where it runs
    std::vector<bool> movable{};  ///< per task

    /// Where every task ends up, one entry per task of the cluster; `none` for pending ones.
    /// @throws InvalidInput unless `values` has one entry per column
    [[nodiscard]] std::vector<NodeId> decode(std::span<const double> values) const;
    /// The vector of a placement. @throws InvalidInput for one that the columns cannot express
    [[nodiscard]] std::vector<double> encode(const std::vector<NodeId>& placement) const;
    /// How many nodes a placement occupies (daemons do not count), and how many tasks it moves.
    [[nodiscard]] std::int64_t occupied(const std::vector<NodeId>& placement) const;
    [[nodiscard]] std::int64_t moves(const std::vector<NodeId>& placement) const;
};
template <class F>
constexpr void visit_fields(std::type_identity<ConsolidationModel>, F&& field) {
    visit_fields(std::type_identity<Model>{}, field);
    field("form", &ConsolidationModel::form);
    field("nodes", &ConsolidationModel::nodes);
    field("classes", &ConsolidationModel::classes);
    field("fixed", &ConsolidationModel::fixed);
    field("task_count", &ConsolidationModel::task_count);
    field("home", &ConsolidationModel::home);
    field("movable", &ConsolidationModel::movable);
}

/// The final state of a consolidation as a model. What it checks is necessary for a plan, so that its optimum
/// bounds every plan: GPUs (whole ones, and fractions by their sum), cores, memory, named resources, devices
/// by class, eligibility (GPU model, labels, node affinity, taints, cordons), node-level anti-affinity.
/// Relaxed are the split of fractions over cards, NUMA and socket guarantees, GPU memory, affinity,
/// anti-affinity and gangs at higher levels, and the order of the moves. Nodes that are empty now stay empty;
/// daemons use what they use. Standby tasks count with what they claim towards all but LP tasks, and LP tasks
/// in total with what is lendable.
///
/// With n placed tasks other than daemons on the N occupied nodes: plain has sum over tasks of allowed nodes
/// + N columns, and rows `assign` n, `gpu` and `cpu` N each and one more per node with Standby tasks (what is
/// claimed), `memory` N where asked for and some task asks for memory, `lock` one per fixed task with locks =
/// rows, `anti_affinity` one per group and node that some member may use, `link` one per allowed node of a
/// task without GPUs and cores, `budget`, `bound` and `vacated` one each where asked for. classes has one
/// integer column per class and allowed node, one more where members of the class run (`moved`; only where
/// moves count: in the goal, or for `max_moves`), N binaries, and the rows `assign` one per class, `link` one
/// per class and allowed node, `moved` one per column of that name, and those above; a group counts there if
/// some member may move.
///
/// @throws InvalidInput for options out of range
[[nodiscard]] ConsolidationModel consolidation(const Cluster& cluster,
                                               const ConsolidationOptions& options = {});

}  // namespace gpusched::milp
