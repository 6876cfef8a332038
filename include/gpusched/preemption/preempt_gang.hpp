// SPDX-License-Identifier: Apache-2.0
// preempt_gang: room for several pods at once, within one network domain where they need that; all of them or none.
#pragma once

#include <gpusched/preemption/preempt.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpusched::preemption {

/// What domains are compared by first.
enum class GangObjective : std::uint8_t {
    cost,        ///< least lost work, then fewest lost gangs
    lost_gangs,  ///< fewest gangs that lose their work, then least lost work
};
constexpr auto enum_names(GangObjective) {
    return name_table<GangObjective>({
        {GangObjective::cost, "cost"},
        {GangObjective::lost_gangs, "lost_gangs"},
    });
}

struct GangDecision {
    std::vector<Decision>
        pods{};  ///< one per pod, in the order given; each with the victims that it alone adds
    std::vector<TaskId> victims{};               ///< of all, ascending
    std::vector<NodeId> vacated_nodes{};         ///< left to daemons alone, ascending
    std::vector<BrokenBudget> broken_budgets{};  ///< ascending; none unless `Options::break_budgets`
    std::vector<Placement>
        replaced{};               ///< victims that run again, by `Options::replace_victims`; in this order
    std::int64_t lost_gangs = 0;  ///< gangs that leave whole, tasks without a job included
    std::int64_t cost = 0;        ///< lost work in thousandths of a GPU-second
};

struct GangResult {
    std::optional<GangDecision>
        decision{};  ///< nothing = some pod finds no place in every domain; nobody is evicted
    bool proven =
        true;  ///< each pod's choice on each node was exact, as Result::proven, and so was the question whether all
               ///< pods fit without evictions; the whole is a heuristic
    StopReason stop_reason = StopReason::completed;  ///< else domains were left out, or one was given up
    std::int64_t domains_considered = 0;
    std::string
        reason{};  ///< without a decision: the domain that held most pods, and what the next one lacks
};

/// Finds room for all pods of a gang, with evictions where needed (ASI's gang preemptors).
///
/// The pods go into one domain of the level that they or other members of their jobs require (`network_affinity`), the one
/// that members which run already are in; without such a requirement anywhere. In every domain the pods are placed one after
/// the other, the largest first, each by `options.policy` with what those before it took and freed; where a pod fits as it
/// is, nobody leaves for it, and no pod leaves for another. Before anybody is evicted, an exact search asks whether all pods
/// of the gang fit together as it is; then nobody is. Gangs of victims and disruption budgets bind as in `preempt`, for all pods
/// together: what was taken of a budget or a surplus for one pod is gone for the next, and no gang of the pods breaks. The domain
/// that goes beyond budgets by the fewest tasks wins, then the best one; ties: fewer victims, then the domain's name. Each placement is checked as in `preempt`, and the
/// whole is returned only when every pod has one.
///
/// A heuristic where evictions are needed: the order of the pods and greedy choices may miss the cheapest set, or room that
/// only fits together.
///
/// @param pods pending tasks, distinct, at least one, that require the same level or none
/// @throws InvalidInput otherwise, and for options out of range; InternalError as `preempt`
/// O(domains x pods x nodes of a domain) searches of one node, and per domain at most 200,000 steps of the exact search.
[[nodiscard]] GangResult preempt_gang(const Cluster& cluster, std::span<const TaskId> pods,
                                      const Options& options = {},
                                      GangObjective objective = GangObjective::cost,
                                      const Context& context = {});

/// Evictions, then all placements.
[[nodiscard]] Plan to_plan(const GangDecision& decision, std::span<const TaskId> pods);

}  // namespace gpusched::preemption
