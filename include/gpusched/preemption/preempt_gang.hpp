// SPDX-License-Identifier: Apache-2.0
// preempt_gang(): selects nodes and victims for all pods of a gang, or for none of them.
#pragma once

#include <gpusched/preemption/preempt.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpusched::preemption {

/// The first key by which domains are compared.
enum class GangObjective : std::uint8_t {
    cost,        ///< least lost work, then fewest lost gangs
    lost_gangs,  ///< fewest gangs that lose their work, then least lost work
};

/// Nodes for all pods of a gang, and the tasks to evict.
struct GangDecision {
    std::vector<Decision> pods{};   ///< one per pod, in the given order; each with the victims that it adds
    std::vector<TaskId> victims{};  ///< of all pods, ascending
    std::vector<NodeId> vacated_nodes{};         ///< nodes on which only daemons remain, ascending
    std::vector<BrokenBudget> broken_budgets{};  ///< ascending; empty unless `Options::break_budgets`
    /// Victims that are placed again, in this order (`Options::replace_victims`).
    std::vector<Placement> replaced{};
    std::int64_t lost_gangs = 0;  ///< gangs that are evicted as a whole, including tasks without a job
    std::int64_t cost = 0;        ///< lost work in thousandths of a GPU-second
};

/// The result of `preempt_gang`.
struct GangResult {
    std::optional<GangDecision> decision{};  ///< absent if no domain holds all pods
    /// No limit was hit: each pod's choice on each node is exact, and so is the test whether all pods fit
    /// without evictions. The combination of pods is a heuristic.
    bool proven = true;
    /// If not `completed`, some domains were not searched completely.
    StopReason stop_reason = StopReason::completed;
    std::int64_t domains_considered = 0;
    /// Without a decision: the domain that holds most pods, and the pod that does not fit; or why the pods do
    /// not wait for room.
    std::string reason{};
};

/// Finds nodes for all pods of a gang, and the tasks to evict if they do not fit as it is (ASI's gang
/// preemptors).
///
/// All pods go into one network domain of the level that they or other members of their jobs require
/// (`network_affinity`). If members already run, it is their domain. Without such a requirement the domain is
/// the cluster.
///
/// In each domain the pods are placed in sequence, the largest first, each by `options.policy`. Nodes are compared
/// by the policy's objective; the node orders of `reprieve` and `first_fit` apply to `preempt` only. A pod that
/// fits as it is evicts no task, and no pod evicts another. An exact search first tests whether all pods fit
/// without evictions. Gangs of victims and disruption budgets bind as in `preempt`, for all pods together,
/// and the gangs of the pods stay intact.
///
/// The domain with the fewest tasks beyond budgets is chosen, then by `objective`; ties: fewer victims,
/// domain name. Each placement is verified as in `preempt`. If evictions are needed, this is a heuristic: the
/// order of pods and the greedy choices can miss the cheapest set of victims, or a set that lets all pods
/// run.
///
/// @param pods pending tasks, distinct, at least one, that require the same level or none
/// @throws InvalidInput otherwise, and for options out of range; InternalError as `preempt`
/// O(domains x pods x nodes of a domain) searches of one node, and per domain at most 200,000 steps of the
/// exact search.
[[nodiscard]] GangResult preempt_gang(const Cluster& cluster, std::span<const TaskId> pods,
                                      const Options& options = {},
                                      GangObjective objective = GangObjective::cost,
                                      const Context& context = {});

/// The decision as a plan: evictions, then the placements.
[[nodiscard]] Plan to_plan(const GangDecision& decision, std::span<const TaskId> pods);

}  // namespace gpusched::preemption
