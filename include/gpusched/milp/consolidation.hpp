// SPDX-License-Identifier: Apache-2.0
// Consolidation as a model: the fewest occupied nodes, with the fewest moves.
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

/// The representation of tasks.
enum class ConsolidationForm : std::uint8_t {
    plain,    ///< F1: a binary per task and node
    classes,  ///< F3: an integer per class of equal tasks and node; locked tasks reduce the capacity of nodes
};

/// The representation of tasks that stay, in the plain form.
enum class LockForm : std::uint8_t {
    bounds,  ///< columns fixed by their bounds
    rows,    ///< a row each
};

/// The objective.
enum class ConsolidationGoal : std::uint8_t {
    nodes_then_moves,  ///< occupied nodes, then moves, in one objective: a move weighs 1 / (tasks + 1)
    nodes,             ///< occupied nodes
    moves,             ///< moves: for `vacated_gpus_at_least`
};

/// How a consolidation model is built.
struct ConsolidationOptions {
    ConsolidationForm form = ConsolidationForm::plain;             ///< the form
    LockForm locks = LockForm::bounds;                             ///< how tasks that stay are represented
    ConsolidationGoal goal = ConsolidationGoal::nodes_then_moves;  ///< the objective
    /// Rows for memory, if any task needs some; off = memory is relaxed.
    bool memory = true;
    std::optional<std::int64_t> max_moves{};  ///< most moves; absent = no limit
    /// Lower bound on the occupied nodes, added as a row.
    std::optional<std::int64_t> occupied_at_least{};
    /// Fewest healthy GPUs on vacated nodes, added as a row.
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

/// A consolidation model and the meaning of its columns.
///
/// Size, for n placed tasks without daemons on N occupied nodes. plain has sum over tasks of allowed nodes +
/// N columns. Its rows: `assign` n; `gpu` and `cpu` N each, plus one per node with Standby tasks for the
/// claims; `memory` N if some task needs memory; `lock` one per fixed task with locks = rows; `anti_affinity`
/// one per group and node that some member may use; `link` one per allowed node of a task without GPUs and
/// cores; `budget`, `bound` and `vacated` one each if requested.
///
/// classes has one integer column per class and allowed node, one `moved` more if members run there and moves
/// count, and N binaries. Its rows: `assign` one per class, `link` one per class and allowed node, `moved`
/// one per column of that name, and those above; a group counts there if some member may move.
struct ConsolidationModel : Model {
    ConsolidationForm form = ConsolidationForm::plain;
    /// Occupied nodes: the j of the index maps `x(k, j)` and `y(j)`.
    std::vector<NodeId> nodes{};
    /// Equal tasks: the k of `x`; one task each in the plain form.
    std::vector<std::vector<TaskId>> classes{};
    std::vector<TaskId> fixed{};  ///< tasks that stay and are in no class
    std::size_t task_count = 0;   ///< task slots of the cluster
    std::vector<NodeId> home{};   ///< per task: its node

    /// Returns the node of every task of the cluster; `none` for pending ones.
    /// @throws InvalidInput unless `values` has one entry per column
    [[nodiscard]] std::vector<NodeId> decode(std::span<const double> values) const;
    /// Returns the vector of a placement. @throws InvalidInput if the columns cannot express it
    [[nodiscard]] std::vector<double> encode(const std::vector<NodeId>& placement) const;
    /// Returns the nodes that a placement occupies, without daemons, and the tasks that it moves.
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
}

/// Builds a model of the final state of a consolidation. Its rows are necessary for a plan, so its optimum
/// bounds every plan. See ConsolidationModel for its size.
///
/// - Exact: GPUs (whole ones, and fractions by their sum), cores, memory, named resources, devices by class,
///   eligibility (GPU model, labels, node affinity, taints, cordons), and node-level anti-affinity.
/// - Relaxed: the split of fractions over cards, NUMA and socket guarantees, GPU memory, affinity,
///   anti-affinity and gangs at higher levels, and the order of the moves.
/// - Empty nodes stay empty; daemons keep what they use. Standby tasks count with their claim for all except
///   LP tasks, and LP tasks in total with what is lendable.
///
/// @throws InvalidInput for options out of range
[[nodiscard]] ConsolidationModel consolidation(const Cluster& cluster,
                                               const ConsolidationOptions& options = {});

}  // namespace gpusched::milp
