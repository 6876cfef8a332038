// SPDX-License-Identifier: Apache-2.0
// blockers(): what keeps nodes from being freed, ranked by what replanning without it frees.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::consolidation {

/// Why the tasks of a blocker cannot move.
enum class BlockerKind : std::uint8_t {
    budget,         ///< a disruption budget allows no task to be down
    no_disruption,  ///< their job allows no member to be down: its `max_disrupted` is 0
    no_controller,  ///< their `how` is none, and they have no controller that would recreate them
    never_moves,    ///< their `how` is none for another reason: an annotation, another scheduler
    bound_to_node,  ///< no other node passes their volumes or the names of nodes that they ask for
    locked,
    cpu_local,     ///< they are bound to the cores next to their GPUs
    standby,       ///< they lend their resources and need them back in the same place
    core_members,  ///< with `protect_core_members`: their job needs them for `min_members`
    gang_domain,   ///< their job must stay within one network domain
};

/// One thing that an operator can change: a budget, or the tasks of one job with one reason to stay. A task
/// without a job stands for itself.
struct FixedTasks {
    BlockerKind kind = BlockerKind::locked;  ///< why the tasks cannot move
    std::string name;                        ///< of the budget, the job, or the task without a job
    std::string reason;                      ///< why the first of its tasks cannot move, in words
    std::vector<TaskId> tasks;               ///< the placed tasks that it keeps from moving, ascending
    std::int64_t nodes = 0;                  ///< occupied nodes that it holds, alone or with others
};
template <class F>
constexpr void visit_fields(std::type_identity<FixedTasks>, F&& field) {
    field("kind", &FixedTasks::kind);
    field("name", &FixedTasks::name);
    field("reason", &FixedTasks::reason);
    field("tasks", &FixedTasks::tasks);
    field("nodes", &FixedTasks::nodes);
}

/// A blocker, or a pair of blockers, and what a plan without it frees in addition.
struct RankedBlocker {
    std::vector<FixedTasks> blockers;  ///< one, or two that help only together
    std::int64_t nodes = 0;     ///< additional vacated nodes; below 0 if larger nodes replace more of them
    std::int64_t gpus = 0;      ///< additional healthy GPUs of vacated nodes
    std::vector<NodeId> freed;  ///< nodes that only the plan without the blocker vacates, ascending
};
template <class F>
constexpr void visit_fields(std::type_identity<RankedBlocker>, F&& field) {
    field("blockers", &RankedBlocker::blockers);
    field("nodes", &RankedBlocker::nodes);
    field("gpus", &RankedBlocker::gpus);
    field("freed", &RankedBlocker::freed);
}

/// Options of `blockers`.
struct BlockerOptions {
    /// Only nodes of this GPU model count, also by a short name such as "h100"; empty = all nodes.
    std::string gpu_model{};
    /// Weight of a vacated node: its GPUs, or one.
    Objective objective = Objective::gpus;
    /// Nothing leaves these nodes and nothing moves onto them.
    std::vector<NodeId> exempt{};
    /// Only members beyond a job's `min_members` may move.
    bool protect_core_members = false;
    /// Maximum number of blockers and pairs to plan without, >= 1. Those that alone hold the most GPUs come
    /// first.
    std::int64_t max_plans = 300;
    /// Set of policies of each plan: `fast`, `best` (ours) or `ipc` (the paper's).
    Preset preset = Preset::best;
    /// Seed of random choices.
    std::uint64_t seed = 0;
    /// Number of threads; 0 = one per hardware thread. The result does not depend on it.
    std::size_t threads = 0;
    /// Seconds, >= 0. When they have passed, the ranking so far is returned.
    std::optional<double> time_limit{};
};
template <class F>
constexpr void visit_fields(std::type_identity<BlockerOptions>, F&& field) {
    field("gpu_model", &BlockerOptions::gpu_model);
    field("objective", &BlockerOptions::objective);
    field("exempt", &BlockerOptions::exempt);
    field("protect_core_members", &BlockerOptions::protect_core_members);
    field("max_plans", &BlockerOptions::max_plans, at_least(1));
    field("preset", &BlockerOptions::preset);
    field("seed", &BlockerOptions::seed);
    field("threads", &BlockerOptions::threads);
    field("time_limit", &BlockerOptions::time_limit, at_least(0));
}

/// Blockers in the order of what they hold, and the plan with all of them.
struct BlockerRanking {
    std::vector<RankedBlocker>
        ranked;  ///< those that help: most weight first, then fewest tasks, then by name
    /// If no single blocker helps: those that hold the most nodes, ten at most.
    std::vector<FixedTasks> others;
    Plan plan;                           ///< the plan with all blockers
    std::int64_t vacated_nodes = 0;      ///< by that plan
    std::int64_t vacated_gpus = 0;       ///< healthy GPUs of these nodes
    std::int64_t nodes_held = 0;         ///< occupied nodes with a task that cannot move
    std::int64_t gpus_held = 0;          ///< healthy GPUs of these nodes
    std::int64_t nodes_without_all = 0;  ///< vacated nodes of a plan without any blocker
    std::int64_t gpus_without_all = 0;   ///< healthy GPUs of these nodes
    std::int64_t found = 0;              ///< number of blockers
    std::int64_t planned = 0;            ///< single blockers planned without; 0 if even all gain nothing
    std::int64_t pairs_planned = 0;      ///< number of pairs that were planned without
    std::int64_t not_removable = 0;      ///< blockers without which the cluster cannot exist: loans in use
    bool pairs = false;                  ///< true if no single blocker helps, so that pairs were tried
    Preset preset = Preset::best;        ///< set of policies of all plans
    StopReason stop_reason = StopReason::completed;  ///< why the search ended
};
template <class F>
constexpr void visit_fields(std::type_identity<BlockerRanking>, F&& field) {
    field("ranked", &BlockerRanking::ranked);
    field("others", &BlockerRanking::others);
    field("plan", &BlockerRanking::plan);
    field("vacated_nodes", &BlockerRanking::vacated_nodes);
    field("vacated_gpus", &BlockerRanking::vacated_gpus);
    field("nodes_held", &BlockerRanking::nodes_held);
    field("gpus_held", &BlockerRanking::gpus_held);
    field("nodes_without_all", &BlockerRanking::nodes_without_all);
    field("gpus_without_all", &BlockerRanking::gpus_without_all);
    field("found", &BlockerRanking::found);
    field("planned", &BlockerRanking::planned);
    field("pairs_planned", &BlockerRanking::pairs_planned);
    field("not_removable", &BlockerRanking::not_removable);
    field("pairs", &BlockerRanking::pairs);
    field("preset", &BlockerRanking::preset);
    field("stop_reason", &BlockerRanking::stop_reason);
}

/// Finds what keeps nodes from being freed, and ranks it by what a new plan frees without it.
///
/// A blocker is removed in a copy of the cluster: a budget allows all its tasks to be down, `max_disrupted`
/// is absent, a task that never moves restarts, locked tasks are not locked, a gang may leave its domain,
/// volumes are reached from every node. Then `consolidate` plans again. If no blocker helps alone, pairs are
/// tried: first those that hold most.
///
/// @return only blockers that help; the plans are heuristic, so a gain is certain but may be too low
/// @throws InvalidInput for options out of range, an unknown node and an unknown GPU model
/// @note same input gives the same result for any number of threads, unless a time limit or a cancellation
///     ends the search
/// Complexity: O(min(blockers, max_plans)) calls of `consolidate`.
[[nodiscard]] BlockerRanking blockers(const Cluster& cluster, const BlockerOptions& options = {},
                                      const Context& context = {});

}  // namespace gpusched::consolidation
