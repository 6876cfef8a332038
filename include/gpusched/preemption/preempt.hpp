// SPDX-License-Identifier: Apache-2.0
// preempt(): selects victims and a node, so that a pending task can run.
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

/// A disruption budget that a decision exceeds.
struct BrokenBudget {
    std::uint32_t budget = 0;  ///< index into `Inventory::budgets`
    std::int64_t over = 0;     ///< evicted tasks beyond the number that the budget allows
    bool operator==(const BrokenBudget&) const = default;
};

/// A node, the tasks to evict, and the GPUs that the preemptor gets.
struct Decision {
    NodeId node = none<NodeId>;
    /// Ascending; empty if the preemptor fits without evictions. Includes members of broken gangs on other
    /// nodes.
    std::vector<TaskId> victims{};
    GpuMask gpus = 0;
    /// Locality of these GPUs; `numa` without GPUs.
    topology::GpuLocality topology = topology::GpuLocality::numa;
    std::optional<double> score{};               ///< Equation 1; absent for spot policies and without victims
    std::int64_t priority_sum = 0;               ///< sum of the victims' priorities
    std::int64_t cost = 0;                       ///< work lost, in thousandths of a GPU-second
    std::vector<NodeId> vacated_nodes{};         ///< nodes on which only daemons remain, ascending
    std::vector<BrokenBudget> broken_budgets{};  ///< ascending; empty unless `Options::break_budgets`
    /// Victims that are placed again, in this order (`Options::replace_victims`).
    std::vector<Placement> replaced{};
    bool operator==(const Decision&) const = default;
};

/// Counters of one `preempt`.
struct Statistics {
    std::int64_t nodes_considered =
        0;                             ///< schedulable nodes on which model, labels and taints allow the task
    std::int64_t candidate_nodes = 0;  ///< nodes on which evictions help
    std::int64_t sets_checked = 0;     ///< sets of victims that were checked
    bool operator==(const Statistics&) const = default;
};

/// The result of `preempt`.
struct Result {
    std::optional<Decision> decision{};  ///< absent if no allowed eviction helps
    /// The policy's answer is exact: no limit was hit. An absent decision is then proof that no eviction
    /// helps.
    bool proven = true;
    Statistics stats{};
    StopReason stop_reason = StopReason::completed;
};

/// Finds a node for a pending task, and the tasks to evict there if it does not fit as it is.
///
/// If the task fits on some node, no task is evicted. The result is the node with the closest GPUs if
/// closeness counts; for spot policies the first node by ASI's ranking (packing, co-location, eviction
/// history). Ties are broken by name.
///
/// Otherwise the policy selects a set of victims on every node that the task may run on, and then the best
/// node. `imp` and `exhaustive` follow FlexTopo (Algorithm 1, score by Equation 1); spot policies minimise
/// the lost work. Ties: fewer victims, lower maximum priority, lower cost, node name, victim names.
/// `reprieve` compares nodes as Kubernetes does: lowest maximum priority, lowest sum of priorities raised by
/// 2^31, fewest victims, latest start of the most important victim, node name. `first_fit` takes the first
/// node of the snapshot.
///
/// A potential victim is preemptible, neither locked, standby nor a daemon, and has a lower priority than the
/// preemptor. For spot policies it is an LP task of any priority, and an LP preemptor evicts no task.
///
/// The tasks of a job are a gang. Members beyond the `min_members` of the job and of their subgroup can be
/// evicted alone. If more are evicted, all running members are victims, on every node, and count in number,
/// priorities and cost. A gang keeps its `min_members` (all members if the job sets none) if the preemptor
/// belongs to it or a member may not be evicted.
///
/// Disruption budgets are kept unless `break_budgets` is set. Then the number of tasks beyond budgets is
/// minimised first, on each node and between nodes.
///
/// Every decision is verified by separate code: CPU, memory, the GPUs and their memory, guaranteed locality,
/// local cores (`cpu_local`), groups, and the gangs and disruption budgets of the victims.
///
/// A task that does not wait for room (model/waiting.hpp) evicts no task and gets no node; `explain` tells why.
///
/// @param task a pending task of the cluster; the cluster must hold no reservations
/// @throws InvalidInput for an unknown or running task and for options out of range; InternalError if that
///     verification fails, in every build, so that an absent decision always means that no eviction helps
///
/// Complexity: O(nodes + tasks) and the search on each node: for whole GPUs and up to 10 victims at most
/// 1,023 sets, and O(running members) for gangs. Deterministic unless a time limit or a cancellation ends the
/// search; thread-safe.
[[nodiscard]] Result preempt(const Cluster& cluster, TaskId task, const Options& options = {},
                             const Context& context = {});

/// Options of `minimal_victim_sets`. Ranges are checked before the search starts.
struct MinimalSetsOptions {
    /// Selects the potential victims: LP tasks for spot policies, otherwise tasks of lower priority.
    VictimPolicy policy = Policy::imp;
    /// How close the GPUs must be: `guaranteed` finds nothing on nodes with unknown hardware; absent = the
    /// task's own requirement.
    std::optional<Qos> qos = Qos::guaranteed;
    /// If every set exceeds disruption budgets, returns the sets that exceed them by the fewest tasks.
    bool break_budgets = false;
    /// Most sets that are checked, and most victims in all returned sets together, >= 1. Beyond either, the
    /// sets found so far are returned and `proven` is false.
    std::int64_t search_limit = Options{}.search_limit;
    std::optional<double> time_limit{};  ///< most seconds, as `Options::time_limit`
};
template <class F>
constexpr void visit_fields(std::type_identity<MinimalSetsOptions>, F&& field) {
    field("qos", &MinimalSetsOptions::qos);
    field("break_budgets", &MinimalSetsOptions::break_budgets);
    field("search_limit", &MinimalSetsOptions::search_limit, at_least(1));
    field("time_limit", &MinimalSetsOptions::time_limit, at_least(0));
}

/// The result of `minimal_victim_sets`.
struct MinimalSets {
    std::vector<std::vector<TaskId>> sets{};
    bool proven = true;  ///< false if a limit was hit: sets may be missing
    StopReason stop_reason = StopReason::completed;
};
/// Lists all smallest sets of victims that let the task run on one node (IMP, Algorithm 2).
///
/// The sets and their members are in snapshot order. One empty set if the task fits as it is; no set if no
/// eviction helps. Sets include all members of broken gangs, on every node, and keep disruption budgets
/// unless `break_budgets` is set.
/// @throws InvalidInput as `preempt`, and for a node that the cluster does not have
[[nodiscard]] MinimalSets minimal_victim_sets(const Cluster& cluster, TaskId task, NodeId node,
                                              const MinimalSetsOptions& options = {},
                                              const Context& context = {});

/// The decision as a plan: evictions, then the placement. `verify::plan` accepts it, except if `qos` relaxed
/// the task's own guarantee or the task has local cores, which plans do not describe.
[[nodiscard]] Plan to_plan(const Decision& decision, TaskId task);

/// Why no eviction helps: the closest node, and the resource that it lacks even without all potential
/// victims.
struct Explanation {
    std::optional<NodeId> node{};  ///< the closest node; absent = the task may run on no schedulable node
    /// The first obstacle; none = the task fits, possibly after evictions.
    Obstacle obstacle = Obstacle::none;
    /// The missing amount: milli-cores, MiB, GPUs, a named resource, or tasks beyond disruption budgets; 0 if
    /// the obstacle is no quantity.
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

/// Explains why `preempt` finds nothing.
///
/// If evictions would help but exceed disruption budgets, names the budgets (`Obstacle::disruption_budget`).
/// Otherwise the closest node has the fewest kinds of missing resources; ties: fewest missing GPUs, least
/// memory, least CPU, the first node.
/// @throws InvalidInput as `preempt`
[[nodiscard]] Explanation explain(const Cluster& cluster, TaskId task, const Options& options = {});

}  // namespace gpusched::preemption
