// SPDX-License-Identifier: Apache-2.0
// Plan checker: replays a plan on a snapshot and reports everything that is wrong with it.
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

/// A task on a node while a plan is carried out; one that moves is on two.
struct Copy {
    const TaskSpec* task;
    const NodeSpec* node;
};

struct Options {
    std::size_t max_violations = 100;  ///< how many are reported in words, >= 1; all are counted
    /// A constraint of the caller's own: what is wrong with a task that arrives on a node by a move or a placement; empty = nothing. Asked with
    /// all copies that there are at that moment, those of all arrivals included.
    std::function<std::string(const TaskSpec& task, const NodeSpec& node, std::span<const Copy> copies)>
        rule{};
};
template <class F>
constexpr void visit_fields(std::type_identity<Options>, F&& field) {
    field("max_violations", &Options::max_violations, at_least(1));
}

struct Report {
    bool ok = true;                       ///< nothing is wrong
    std::vector<std::string> violations;  ///< in the order of the replay, up to the limit
    std::size_t violation_count = 0;      ///< all of them
    std::vector<std::string>
        vacated_nodes;              ///< what the replay vacates, in snapshot order, whatever the plan claims
    std::int64_t vacated_gpus = 0;  ///< their healthy GPUs
};
template <class F>
constexpr void visit_fields(std::type_identity<Report>, F&& field) {
    field("ok", &Report::ok);
    field("violations", &Report::violations);
    field("violation_count", &Report::violation_count);
    field("vacated_nodes", &Report::vacated_nodes);
    field("vacated_gpus", &Report::vacated_gpus);
}

/// Replays `plan` step by step and reports every constraint that it breaks.
///
/// The replay keeps its own books by names from the snapshot as data; it shares no code with `Cluster`, the
/// feasibility questions or any algorithm, so that it can check them. Evictions come first, then wave after wave,
/// then placements. All destinations of a wave are taken while every source of that wave is still held, and each of
/// them must then satisfy: CPU, memory, named GPUs (number, range, health, free share, memory where the node models
/// it, guaranteed NUMA or socket), named resources, devices (number, one accepted class, health), claims of Standby tasks (LP tasks may overlap them), GPU model, node selector,
/// node affinity, taints, cordon, anti-affinity and affinity (the moving task's old copy does not count, both copies of all others
/// do) and required network domains (both copies of all members count). Besides, a move starts where its task is,
/// leads to another node that held a non-daemon task before the plan (or is listed as opened) and is not listed as
/// vacated, moves no locked, daemon or Standby task and none otherwise than its `how` says, is its task's only one in
/// the wave, respects the job's `max_disrupted` and satisfies the rule of the options. A task that restarts leaves its source when its wave starts. From then
/// until the wave ends it is down, and so is an evicted task until its placement: at no moment are more tasks of a
/// disruption budget down than it allows. Moves of one chain serve one node, which is vacated. Waves are 0 .. waves - 1 without gaps; `vacated_nodes` and `opened_nodes` are exact; evicted tasks are preemptible, placed ones do not run;
/// a plan of moves alone vacates no more than its bound allows, less what it opens; and `goal_reached` says what is true of the goal.
///
/// A step that breaks a constraint is carried out nevertheless, so that later ones are judged in context; one that
/// cannot be carried out (unknown name, impossible GPU) is left out. Constraints are judged for what a step places,
/// never for what was there before. Cores are not accounted for, so a step that puts a
/// `cpu_local` task somewhere is reported as one that cannot be judged.
///
/// @param snapshot a valid snapshot (`Cluster::build` accepts it)
/// @param plan anything
/// @return the report; each violation names its step, task, node and constraint
/// @throws InvalidInput when the snapshot is so inconsistent that nothing can be replayed (names that are duplicate or
///     unknown, a task holding GPUs that its node lacks), or `max_violations` is 0
///
/// O(size of the snapshot + steps x residents of a node in the worst case). Deterministic; thread-safe.
[[nodiscard]] Report plan(const ClusterSpec& snapshot, const PlanSpec& plan, const Options& options = {});

}  // namespace gpusched::verify
