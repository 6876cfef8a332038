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
    /// Running tasks that may be moved may end up on other nodes. Off: they stay.
    bool allow_moves = false;
    SolveOptions solve{};  ///< the time limit is for all steps together; `start` is not used
};
template <class F>
constexpr void visit_fields(std::type_identity<PackingOptions>, F&& field) {
    field("allow_moves", &PackingOptions::allow_moves);
    field("solve", &PackingOptions::solve, Inlined{});
}

/// @throws InvalidInput with every option out of range
void validate(const PackingOptions& options);

/// What was proved about one priority.
struct PackingStep {
    std::int64_t priority = 0;
    std::int64_t pending = 0;  ///< how many tasks of that priority wait
    std::int64_t placed = 0;   ///< how many of them are placed
    std::int64_t bound = 0;    ///< how many can be placed at most, given the steps before
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

/// Who runs where.
struct PackingResult {
    std::vector<NodeId> placement{};   ///< per task of the cluster; `none` = waits
    std::vector<PackingStep> steps{};  ///< highest priority first
    std::int64_t moves = 0;            ///< running tasks that end up elsewhere
    bool optimal = false;              ///< every step was solved to optimality
};
template <class F>
constexpr void visit_fields(std::type_identity<PackingResult>, F&& field) {
    field("placement", &PackingResult::placement);
    field("steps", &PackingResult::steps);
    field("moves", &PackingResult::moves);
    field("optimal", &PackingResult::optimal);
}

/// The model of one step: which tasks run where.
struct PackingModel : Model {
    std::vector<TaskId>
        tasks{};  ///< the i of `x(i, n)`: pending tasks and, with `allow_moves`, those that may move
    std::vector<int>
        untouched{};  ///< per node: cards that nobody who stays uses, the right-hand side of `gpu`
    std::vector<std::vector<std::int64_t>>
        card_milli{};  ///< per node and card: what fractions may take of it
    /// Per task of the cluster that the model was made of: where it runs; `none` = waits.
    /// @throws InvalidInput unless there is one entry per column, and for a cluster of another size
    [[nodiscard]] std::vector<NodeId> decode(const Cluster& cluster, std::span<const double> values) const;
    /// The vector of such a placement. Fractions go onto cards so that all fit, where a search of 100,000
    /// steps per node finds how; else onto those with the most room, and `evaluate` says which row that
    /// violates.
    /// @throws InvalidInput with every task that is where the columns cannot express it, and for a cluster of
    ///     another size
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

/// The model of the step for `priority`: places the most pending tasks of it, at least `placed[k]` of the
/// k-th priority above (by descending priority), any of those below count nothing.
///
/// The tasks are the pending ones and, with `allow_moves`, those of whole GPUs that may move; daemons are
/// left out. A task may run on its own node, and on those that are schedulable and eligible and have as much
/// as it asks for of cores, memory and GPUs (a fraction: of one card) once all that may move is gone.
///
/// Columns: a binary x(i, n) per task of whole GPUs and node that it may run on, card(i, n, g) per fraction
/// and card with enough room on such a node, used(n, g) per card of those that nobody who stays uses. Rows:
/// `place` one per task (pending: at most once, movable: exactly once), `gpu`, `cpu` and `memory` one per
/// node (whole GPUs, and used cards, within the cards that nobody who stays uses), `card` one per card that
/// some fraction has a column for, `hold` one per column `used` whose card a movable task holds, `extras` one
/// per node and named resource, and per node and list of device classes that some task accepts,
/// `anti_affinity` one per group and node that some member may use, `above` one per entry of `placed`.
///
/// Exact for GPUs (whole and fractions), cores, memory, named resources, devices where each task accepts one
/// class, eligibility, cordons and node-level anti-affinity of equal limits; relaxed are NUMA and socket
/// guarantees, GPU memory, affinity, network levels and anti-affinity at other levels or of different limits.
/// What Standby tasks lend is not used. Fractions that run stay.
/// @throws InvalidInput for options out of range, a task to place or move that some group binds to avoid, to
///     be avoided, near or to spread (the model has no rows for that), negative entries of `placed`, and more
///     of them than pending tasks have priorities above
[[nodiscard]] PackingModel packing_model(const Cluster& cluster, std::int64_t priority,
                                         const std::vector<std::int64_t>& placed = {},
                                         const PackingOptions& options = {});

/// Places pending tasks lexicographically by priority: one model per priority, the optimum of each a row in
/// the next.
///
/// Source: "Priority Matters", the Kubernetes fallback; no large weights are used. Where a step is not solved
/// to optimality the next ones build upon what was found, and `optimal` is false.
/// @throws InvalidInput for options out of range; BackendError where the solver is missing
[[nodiscard]] PackingResult priority_packing(const Cluster& cluster, const PackingOptions& options = {},
                                             const AnySolver& solver = "auto", const Context& context = {});

}  // namespace gpusched::milp
