// SPDX-License-Identifier: Apache-2.0
// preempt: whom to evict, and where, so that a task that finds no room can run.
#pragma once

#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/preemption/options.hpp>
#include <gpusched/topology/hardware_graph.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::preemption {

/// A disruption budget, and how many more of its tasks evictions take down than it allows.
struct BrokenBudget {
    std::uint32_t budget = 0;  ///< index into `Inventory::budgets`
    std::int64_t over = 0;
    bool operator==(const BrokenBudget&) const = default;
};

/// A node, whom to evict, and what the preemptor then takes.
struct Decision {
    NodeId node = none<NodeId>;
    /// Ascending; empty = it fits as it is. They run on the node, but for members elsewhere of gangs that break.
    std::vector<TaskId> victims{};
    GpuMask gpus = 0;
    topology::GpuLocality topology =
        topology::GpuLocality::numa;             ///< of these GPUs, or of any one without GPUs
    std::optional<double> score{};               ///< Equation 1; absent for spot policies and without victims
    std::int64_t priority_sum = 0;               ///< of the victims
    std::int64_t cost = 0;                       ///< work lost, in thousandths of a GPU-second
    std::vector<NodeId> vacated_nodes{};         ///< that victims leave to daemons alone, ascending
    std::vector<BrokenBudget> broken_budgets{};  ///< ascending; none unless `Options::break_budgets`
    std::vector<Placement>
        replaced{};  ///< victims that run again, by `Options::replace_victims`; in this order
    bool operator==(const Decision&) const = default;
};

struct Statistics {
    std::int64_t nodes_considered = 0;  ///< schedulable ones that the task may run on (model, labels, taints)
    std::int64_t candidate_nodes = 0;   ///< those on which evictions help
    std::int64_t sets_checked = 0;      ///< sets of victims looked at
    bool operator==(const Statistics&) const = default;
};

struct Result {
    std::optional<Decision>
        decision{};  ///< nothing = no eviction that is allowed helps, and nobody is evicted
    /// The policy's answer is exact: no limit was hit. Also "nothing" is then certain.
    bool proven = true;
    Statistics stats{};
    StopReason stop_reason = StopReason::completed;
};

/// Finds room for a pending task, by evictions where there is none.
///
/// A task that fits somewhere evicts nobody: the answer is the node with the closest GPUs (where closeness counts), for spot
/// policies the first by ASI's ranking (packing, co-location, eviction history), by name among equal ones. Else every node that the task may run on is asked for its best set of victims, and the best
/// node wins: FlexTopo's pipeline (Algorithm 1) for `imp` and `exhaustive`, with Equation 1 as score; for spot policies
/// the least work lost. A potential victim is preemptible, not locked, not standby, no daemon, and has a lower priority
/// than the preemptor; for spot policies it is LP whatever its priority, and an LP task evicts nobody. Ties: fewer
/// victims, lower maximum priority, lower cost, node name, victim names. `reprieve` compares nodes as Kubernetes does:
/// lowest maximum priority, lowest sum (of priorities raised by 2^31), fewest victims, latest start of the most important
/// victim, node name; `first_fit` takes the first node of the snapshot.
///
/// Tasks of one job are a gang. Those beyond its `min_members`, and those of their subgroup, may leave alone; when more do, all
/// running members leave, wherever they are, and count as victims: in number, priorities and cost. A gang that holds somebody who may not be evicted, or
/// that the preemptor is of, keeps its `min_members` (all, where the job says nothing).
///
/// No policy takes more tasks of a disruption budget down than it allows, unless `break_budgets` says so. Then the fewest tasks
/// beyond budgets come before all else, on each node and between nodes.
///
/// No set of victims is returned whose placement was not checked once more: CPU, memory, the GPUs by number, their
/// memory, the guaranteed locality, local cores (`cpu_local`) and groups, with every other task on its own devices; gangs and
/// disruption budgets of the victims.
///
/// @param task a pending task of the cluster; the cluster must hold no reservations
/// @throws InvalidInput for a task that is unknown or runs, and for options out of range; InternalError when that check
///     fails, in every build: "nothing" always means that nothing helps
///
/// Complexity: O(nodes + tasks) and the search per node; for whole GPUs and up to 10 victims at most 1,023 sets a node. A node
/// whose victims gangs bind adds O(running members of these gangs).
/// Deterministic unless a time limit or a cancellation strikes; thread-safe.
[[nodiscard]] Result preempt(const Cluster& cluster, TaskId task, const Options& options = {},
                             const Context& context = {});

/// What `minimal_victim_sets` looks at. Ranges are checked first thing.
struct MinimalSetsOptions {
    VictimPolicy policy =
        Policy::imp;  ///< who may be a victim: for spot policies LP tasks, else tasks of lower priority
    /// How near each other the GPUs must be: `guaranteed` finds nothing on nodes whose hardware is not known; absent = what the task
    /// says itself.
    std::optional<Qos> qos = Qos::guaranteed;
    /// Sets may break disruption budgets where no other does: those that break the fewest.
    bool break_budgets = false;
    /// Sets of victims looked at, and victims of all sets together (and with them the memory): those found first are returned,
    /// and `proven` is false.
    std::int64_t search_limit = Options{}.search_limit;
    std::optional<double> time_limit{};  ///< seconds: a guard, as `Options::time_limit`
};
template <class F>
constexpr void visit_fields(std::type_identity<MinimalSetsOptions>, F&& field) {
    field("qos", &MinimalSetsOptions::qos);
    field("break_budgets", &MinimalSetsOptions::break_budgets);
    field("search_limit", &MinimalSetsOptions::search_limit, at_least(1));
    field("time_limit", &MinimalSetsOptions::time_limit, at_least(0));
}

/// What `minimal_victim_sets` found.
struct MinimalSets {
    std::vector<std::vector<TaskId>> sets{};
    bool proven = true;  ///< false: a limit was hit, sets may be missing
    StopReason stop_reason = StopReason::completed;
};
/// IMP's answer for one node (Algorithm 2): all sets of as few victims as possible that make room, each in snapshot
/// order, and so are the sets; one empty set if the task fits as it is, nothing if no eviction helps. Sets hold whole gangs,
/// wherever their members run, and keep disruption budgets (with `break_budgets` those that break the fewest).
/// @throws InvalidInput as `preempt`, and for a node that the cluster does not have
[[nodiscard]] MinimalSets minimal_victim_sets(const Cluster& cluster, TaskId task, NodeId node,
                                              const MinimalSetsOptions& options = {},
                                              const Context& context = {});

/// The decision as a plan: evictions, then the placement. `verify::plan` accepts it, unless `qos` relaxed what the task
/// itself guarantees or it has local cores, which plans cannot be judged by.
[[nodiscard]] Plan to_plan(const Decision& decision, TaskId task);

/// Why nothing helped: the node that came closest, and what it lacks with all potential victims gone.
struct Explanation {
    std::optional<NodeId>
        node{};  ///< the node that came closest; absent = the task may run on no schedulable node
    Obstacle obstacle = Obstacle::none;  ///< what is in the way; none = evictions (or nothing) do help
    /// Milli-cores, MiB, GPUs, of a named resource, or tasks beyond disruption budgets; 0 where the obstacle is no quantity.
    std::int64_t missing = 0;
    std::string text{};  ///< the same in words
};
template <class F>
constexpr void visit_fields(std::type_identity<Explanation>, F&& field) {
    field("node", &Explanation::node);
    field("obstacle", &Explanation::obstacle);
    field("missing", &Explanation::missing);
    field("text", &Explanation::text);
}

/// Where evictions help only if disruption budgets break, these are named (`Obstacle::disruption_budget`). Else closest is the node with the fewest kinds of things missing, then with the fewest GPUs, the least memory, the least
/// CPU missing, then the first.
/// @throws InvalidInput as `preempt`
[[nodiscard]] Explanation explain(const Cluster& cluster, TaskId task, const Options& options = {});

}  // namespace gpusched::preemption
