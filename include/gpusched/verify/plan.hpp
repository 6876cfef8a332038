// SPDX-License-Identifier: Apache-2.0
// Plan checker: replays a plan on a snapshot and reports every violated constraint.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/model/spec.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::verify {

/// A task on a node during the replay; a task that moves by copy is on two.
struct Copy {
    const TaskSpec* task;
    const NodeSpec* node;
};

/// Options of plan().
struct Options {
    std::size_t max_violations = 100;  ///< limit of reported texts, >= 1; all violations are counted
    /// A constraint of the caller: returns why a task may not arrive on a node by a move or a placement, or
    /// an empty text. `copies` holds all copies at that moment, including all arrivals.
    std::function<std::string(const TaskSpec& task, const NodeSpec& node, std::span<const Copy> copies)>
        rule{};
};
template <class F>
constexpr void visit_fields(std::type_identity<Options>, F&& field) {
    field("max_violations", &Options::max_violations, at_least(1));
}

/// The result of plan().
struct Report {
    bool ok = true;                          ///< no violation
    std::vector<std::string> violations;     ///< in the order of the replay, up to the limit
    std::size_t violation_count = 0;         ///< number of all violations
    std::vector<std::string> vacated_nodes;  ///< by the replay, in snapshot order; ignores the plan's claims
    std::int64_t vacated_gpus = 0;           ///< their healthy GPUs
};
template <class F>
constexpr void visit_fields(std::type_identity<Report>, F&& field) {
    field("ok", &Report::ok);
    field("violations", &Report::violations);
    field("violation_count", &Report::violation_count);
    field("vacated_nodes", &Report::vacated_nodes);
    field("vacated_gpus", &Report::vacated_gpus);
}

/// Replays `plan` step by step and reports every constraint that it violates.
///
/// It shares no code with `Cluster`, the feasibility functions or any algorithm. Evictions come first, then wave
/// after wave, then placements. All destinations of a wave are taken while every source of that wave is still
/// held, except those of tasks that restart. docs/verify.md lists the checks of arrivals and of the plan.
///
/// A step that violates a constraint is executed nevertheless. A step that cannot be executed (unknown name,
/// impossible GPU) is skipped. The placements before the plan are not checked. A step that places a `cpu_local` task
/// is reported as one that cannot be checked.
///
/// @param snapshot a valid snapshot (`Cluster::build` accepts it)
/// @param plan any plan
/// @return the report; each violation names its step, task, node and constraint
/// @throws InvalidInput if the snapshot cannot be replayed (duplicate or unknown names, a task with GPUs that its
///     node lacks), or if `max_violations` is 0
/// O(size of the snapshot + steps x residents of a node in the worst case). Deterministic; thread-safe.
[[nodiscard]] Report plan(const ClusterSpec& snapshot, const PlanSpec& plan, const Options& options = {});

}  // namespace gpusched::verify
