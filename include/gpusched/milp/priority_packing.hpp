// SPDX-License-Identifier: Apache-2.0
// Priority packing: place the most pods of the highest priority, then of the next, with a proof.
#pragma once

#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/milp/model.hpp>
#include <gpusched/milp/solver.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::milp {

struct PackingOptions {
    bool allow_moves = false;  ///< movable running tasks can move to other nodes; off = they stay
    SolveOptions solve{};      ///< the time limit covers all steps; `start` is ignored
};
template <class F>
constexpr void visit_fields(std::type_identity<PackingOptions>, F&& field) {
    field("allow_moves", &PackingOptions::allow_moves);
    field("solve", &PackingOptions::solve, Inlined{});
}

/// @throws InvalidInput with every option out of range
void validate(const PackingOptions& options);

/// The result for one priority.
struct PackingStep {
    std::int64_t priority = 0;
    std::int64_t pending = 0;  ///< pending tasks of this priority
    std::int64_t placed = 0;   ///< placed ones of them
    std::int64_t bound = 0;    ///< upper bound on the placed ones, given the steps before
    Status status = Status::failed;
    bool operator==(const PackingStep&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<PackingStep>, F&& field) {
    field("priority", &PackingStep::priority);
    field("pending", &PackingStep::pending);
    field("placed", &PackingStep::placed);
    field("bound", &PackingStep::bound);
    field("status", &PackingStep::status);
}

/// The placement, and the result of each priority.
struct PackingResult {
    std::vector<NodeId> placement{};   ///< node of each task of the cluster; `none` = pending
    std::vector<PackingStep> steps{};  ///< highest priority first
    std::int64_t moves = 0;            ///< running tasks that move
    bool optimal = false;              ///< every step was solved to optimality
};
template <class F>
constexpr void visit_fields(std::type_identity<PackingResult>, F&& field) {
    field("placement", &PackingResult::placement);
    field("steps", &PackingResult::steps);
    field("moves", &PackingResult::moves);
    field("optimal", &PackingResult::optimal);
}

/// The model of one priority.
///
/// Columns: a binary x(i, n) per task of whole GPUs and allowed node; card(i, n, g) per fraction and card
/// with enough room; used(n, g) per such card that no staying task uses. Rows: `place` one per task (pending:
/// at most once, movable: exactly once); `gpu`, `cpu` and `memory` one per node; `card` one per card with a
/// column of a fraction; `hold` one per column `used` with a card of a movable task; `extras` one per node
/// and named resource, and per node and accepted list of device classes; `anti_affinity` one per group and
/// node that some member may use; `above` one per entry of `placed`.
struct PackingModel : Model {
    std::vector<TaskId> tasks{};  ///< the i of `x(i, n)`: pending tasks and, with `allow_moves`, movable ones
    /// Per node: cards that no staying task uses, the right-hand side of `gpu`.
    std::vector<int> untouched{};
    /// Per node and card: thousandths available to fractions.
    std::vector<std::vector<std::int64_t>> card_milli{};
    /// Returns the node of each task of the cluster; `none` = pending.
    /// @param cluster the cluster of the model
    /// @throws InvalidInput unless there is one entry per column, and for a cluster of another size
    [[nodiscard]] std::vector<NodeId> decode(const Cluster& cluster, std::span<const double> values) const;
    /// Returns the vector of a placement.
    ///
    /// A search of 100,000 steps per node distributes fractions over cards. If it finds no packing, each goes
    /// to the card with the most room, and `evaluate` reports the violated row.
    /// @throws InvalidInput with every task that the columns cannot place there, and for a cluster of another
    ///     size
    [[nodiscard]] std::vector<double> encode(const Cluster& cluster,
                                             const std::vector<NodeId>& placement) const;
};
template <class F>
constexpr void visit_fields(std::type_identity<PackingModel>, F&& field) {
    visit_fields(std::type_identity<Model>{}, field);
    field("tasks", &PackingModel::tasks);
    field("untouched", &PackingModel::untouched);
    field("card_milli", &PackingModel::card_milli);
}

/// Builds the model for `priority`: place the most pending tasks of it, and at least `placed[k]` of the k-th
/// higher priority (descending). Lower priorities count nothing.
///
/// Its tasks are the pending ones and, with `allow_moves`, movable ones with whole GPUs; daemons are left
/// out. A task may run on its own node, and on schedulable and eligible nodes with enough cores, memory and
/// GPUs (for a fraction: one card) once all movable tasks are gone.
///
/// Exact for GPUs, cores, memory, named resources, devices if each task accepts one class, eligibility,
/// cordons, and node-level anti-affinity with equal limits. Relaxed: NUMA and socket guarantees, GPU memory,
/// affinity, network levels, and other anti-affinity. GPUs that Standby tasks lend are not used. Running
/// fractions stay.
/// @throws InvalidInput for options out of range, tasks in groups to avoid, near or to spread (the model has
///     no rows for them), negative entries of `placed`, and more entries than there are higher priorities of
///     pending tasks
[[nodiscard]] PackingModel packing_model(const Cluster& cluster, std::int64_t priority,
                                         const std::vector<std::int64_t>& placed = {},
                                         const PackingOptions& options = {});

/// Places pending tasks lexicographically by priority: one model per priority, with the optimum of each as a
/// row in the next.
///
/// Source: "Priority Matters", the Kubernetes fallback; no large weights are used. If a step is not solved to
/// optimality, the next ones build on its result, and `optimal` is false.
/// @throws InvalidInput for options out of range; BackendError if the solver is missing
[[nodiscard]] PackingResult priority_packing(const Cluster& cluster, const PackingOptions& options = {},
                                             const AnySolver& solver = "auto", const Context& context = {});

}  // namespace gpusched::milp
