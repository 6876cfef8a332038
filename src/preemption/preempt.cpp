// SPDX-License-Identifier: Apache-2.0
// Preemption for one task: selects node and victims, lists minimal sets, explains failures.
#include "preemption/node_evaluator.hpp"
#include "preemption/placement_check.hpp"
#include "preemption/replace_victims.hpp"

#include <gpusched/allocation/rankers.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/waiting.hpp>
#include <gpusched/preemption/preempt.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::preemption {

namespace detail {

/// ASI's rank of a node for a task that fits without evictions: three ordered criteria (section 4.2).
static std::array<std::int64_t, 3> spot_rank(const Cluster& cluster, TaskId task, NodeId node) noexcept {
    return {allocation::Packing{}(cluster, task, node), allocation::Homogeneous{}(cluster, task, node),
            allocation::EvictionHistory{}(cluster, task, node)};
}

// The schedulable nodes that the task accepts and the filter allows.
static std::vector<NodeId> possible_nodes(const Cluster& cluster, const Request& request,
                                          const Options& options) {
    const auto& inv = cluster.inventory();
    std::vector<NodeId> nodes;
    nodes.reserve(cluster.node_count());
    for (const auto node : cluster.nodes())
        if (inv.nodes.receives(node) && request.may_run_on(inv, node) &&
            (!options.filter || (*options.filter)(cluster, request.task, node)))
            nodes.push_back(node);
    return nodes;
}

// Kubernetes' order of nodes (pickOneNodeForPreemption): lower is better.
static auto importance(const NodeEvaluator& node, const Answer& answer) {
    // Kubernetes raises priorities, so that an additional victim is never an improvement.
    constexpr auto raised = std::int64_t{1} << 31;
    return std::tuple(answer.over_budget, answer.max_priority, answer.priority_sum + raised * answer.count,
                      answer.count, -node.longest_running(answer));
}

}  // namespace detail

GPUSCHED_EXPORT Result preempt(const Cluster& cluster, TaskId task, const Options& options,
                               const Context& context) {
    validate(options);
    Budget budget(context, options.time_limit);
    const detail::Request request(cluster, task, options);
    const auto& inv = cluster.inventory();
    Result result;
    if (find_waiting(cluster, {&task, 1})) return result;
    const auto evaluator = std::make_unique_for_overwrite<detail::NodeEvaluator>();

    const auto nodes = detail::possible_nodes(cluster, request, options);
    result.stats.nodes_considered = std::ssize(nodes);
    const auto earlier = [&](NodeId a, NodeId b) {
        return b == none<NodeId> || comes_before(cluster.name(a), cluster.name(b));
    };

    // First without evictions.
    NodeId best = none<NodeId>;
    std::uint8_t closest = detail::infeasible;
    for (const auto node : nodes) {
        evaluator->read(cluster, request, options.cost, node);
        auto found = evaluator->locality_now();
        if (found == detail::infeasible) continue;
        if (request.qos == Qos::none) found = 0;
        const auto is_better = [&] {
            if (best == none<NodeId> || found != closest) return found < closest;
            if (request.spot) {
                const auto mine = detail::spot_rank(cluster, task, node);
                const auto other = detail::spot_rank(cluster, task, best);
                if (mine != other) return mine > other;
            }
            return earlier(node, best);
        };
        if (is_better()) best = node, closest = found;
    }
    detail::Answer chosen;
    if (best != none<NodeId>) {
        evaluator->read(cluster, request, options.cost, best);
        chosen.locality = evaluator->locality_now();
        evaluator->decide(chosen, request.spot, result.decision.emplace());
        detail::require_placement(cluster, request, *result.decision);
        return result;
    }
    if (request.spot && request.borrows) return result;  // new spot tasks never preempt

    detail::GangTable gangs;
    if (inv.job_names.size() > 0) gangs.read(cluster);
    const auto& policy = detail::traits_of(options.policy);
    evaluator->watch(&budget);
    std::int64_t evaluated = 0;
    for (const auto node : nodes) {
        if (evaluated % 16 == 0) budget.report("preemption", evaluated, result.stats.nodes_considered);
        if (evaluated++ % 16 == 0 ? budget.exhausted() : budget.reason() != StopReason::completed) break;
        evaluator->read(cluster, request, options.cost, node, &gangs);
        if (evaluator->size() == 0) continue;
        auto candidate = evaluator->best(options);
        if (!candidate.found()) continue;
        ++result.stats.candidate_nodes;
        if (chosen.found()) {
            if (policy.nodes == detail::NodeChoice::least_important) {
                const auto now = detail::importance(*evaluator, candidate);
                evaluator->read(cluster, request, options.cost, best, &gangs);
                const auto before = detail::importance(*evaluator, chosen);
                if (now > before || (now == before && !earlier(node, best))) continue;
            } else if (policy.nodes == detail::NodeChoice::first) {
                if (candidate.over_budget >= chosen.over_budget) continue;
            } else {
                const int order = detail::compare(candidate, chosen, policy.objective, true);
                if (order > 0 || (order == 0 && !earlier(node, best))) continue;
            }
        }
        best = node;
        chosen = std::move(candidate);
        if (policy.nodes == detail::NodeChoice::first && chosen.over_budget == 0) break;
    }
    result.stats.sets_checked = evaluator->steps();
    result.stop_reason = budget.reason();
    result.proven = evaluator->proven() && result.stop_reason == StopReason::completed;
    if (!chosen.found()) return result;
    evaluator->read(cluster, request, options.cost, best, &gangs);
    Decision decision;
    evaluator->decide(chosen, request.spot, decision);
    detail::require_placement(cluster, request, decision, &gangs);
    if (options.replace_victims) detail::replace_victims(cluster, task, decision);
    result.decision = std::move(decision);
    return result;
}

GPUSCHED_EXPORT MinimalSets minimal_victim_sets(const Cluster& cluster, TaskId task, NodeId node,
                                                const MinimalSetsOptions& given, const Context& context) {
    const Options options{.policy = given.policy,
                          .qos = given.qos,
                          .break_budgets = given.break_budgets,
                          .search_limit = given.search_limit,
                          .time_limit = given.time_limit};
    validate(options);
    Budget budget(context, options.time_limit);
    const detail::Request request(cluster, task, options);
    if (!cluster.contains(node))
        throw InvalidInput(bad_value("node", "#" + std::to_string(index(node)),
                                     "below " + std::to_string(cluster.node_slots())));
    MinimalSets result;
    const auto& inv = cluster.inventory();
    if (!inv.nodes.receives(node) || !request.may_run_on(inv, node) || find_waiting(cluster, {&task, 1}))
        return result;
    const auto evaluator = std::make_unique_for_overwrite<detail::NodeEvaluator>();
    detail::GangTable gangs;
    if (inv.job_names.size() > 0) gangs.read(cluster);
    evaluator->read(cluster, request, options.cost, node, &gangs);
    if (request.spot && request.borrows) {
        if (evaluator->locality_now() != detail::infeasible) result.sets.emplace_back();
    } else {
        budget.report("minimal victim sets", 0, 1);
        evaluator->watch(&budget);
        evaluator->minimal_sets(result.sets);
    }
    result.proven = evaluator->proven();
    result.stop_reason = budget.reason();
    return result;
}

GPUSCHED_EXPORT Plan to_plan(const Decision& decision, TaskId task) {
    Plan plan;
    plan.evictions = decision.victims;
    plan.placements.push_back({task, decision.node, decision.gpus});
    plan.placements.insert(plan.placements.end(), decision.replaced.begin(), decision.replaced.end());
    plan.vacated_nodes = decision.vacated_nodes;
    return plan;
}

namespace detail {

// The first missing resource of the closest node, in words. If nothing is missing, gangs prevent the
// evictions.
static Explanation explain_shortage(const Cluster& cluster, NodeId node, const Request& request,
                                    const Shortage& missing) {
    const auto& inv = cluster.inventory();
    const auto explained = [](Obstacle obstacle, std::int64_t amount, std::string text) {
        return Explanation{std::nullopt, obstacle, amount, std::move(text)};
    };
    if (missing.gpus > 0)
        return explained(Obstacle::gpu, missing.gpus,
                         request.gpus == 1 ? std::string("its GPU is missing")
                                           : concat(missing.gpus, " of the ", request.gpus, " GPUs ",
                                                    missing.gpus == 1 ? "is" : "are", " missing"));
    if (missing.memory_mib > 0)
        return explained(Obstacle::memory, missing.memory_mib,
                         mib_text(missing.memory_mib) + " of memory is missing");
    if (missing.cpu_milli > 0)
        return explained(Obstacle::cpu, missing.cpu_milli,
                         milli_text(missing.cpu_milli) +
                             (missing.cpu_milli == 1000 ? " core is missing" : " cores are missing"));
    if (missing.resource)
        return explained(missing.extras, missing.resource->amount,
                         gpusched::detail::amount_text(inv.resource_names[missing.resource->resource],
                                                       missing.resource->amount) +
                             " of " + gpusched::quoted(inv.resource_names[missing.resource->resource]) +
                             " are missing");
    if (missing.extras != Obstacle::none) {
        const auto& extras = inv.extras[request.extras];
        std::vector<std::string> classes;
        for (const auto c : extras.device_classes) classes.push_back(inv.device_classes[c]);
        return explained(missing.extras, 0,
                         concat("fewer than ", extras.device_count, " of ", either_of(classes), " are left"));
    }
    if (missing.locality && request.level)
        return explained(Obstacle::hardware, 0,
                         "no " + std::string(enum_name(*request.level)) + " has " +
                             std::to_string(request.gpus) + " free GPUs" +
                             (request.cpu_local ? " with enough local cores" : ""));
    if (missing.locality) return explained(Obstacle::hardware, 0, "no free GPUs have enough local cores");
    if (missing.group != Obstacle::none)
        return explained(missing.group, 0, describe_obstacle(cluster, request.task, node, missing.group));
    return explained(Obstacle::gang, 0,
                     "the task would fit, but some of them belong to gangs with members that may not be "
                     "evicted");
}

}  // namespace detail

GPUSCHED_EXPORT Explanation explain(const Cluster& cluster, TaskId task, const Options& options) {
    validate(options);
    const detail::Request request(cluster, task, options);
    if (const auto waiting = find_waiting(cluster, {&task, 1}))
        return {std::nullopt, Obstacle::waiting, 0, "does not wait for room: " + describe_waiting(*waiting)};
    const auto& inv = cluster.inventory();
    const auto evaluator = std::make_unique_for_overwrite<detail::NodeEvaluator>();
    const auto describe = [&](NodeId node, const std::string& what) {
        return "node " + gpusched::quoted(cluster.name(node)) + " comes closest: " + what;
    };
    detail::GangTable gangs;
    if (inv.job_names.size() > 0) gangs.read(cluster);
    const bool keeps_budgets = !inv.tasks.budgets.empty() && !options.break_budgets;
    Explanation result;
    std::optional<std::tuple<int, int, std::int64_t, std::int64_t>> least;
    for (const auto node : detail::possible_nodes(cluster, request, options)) {
        evaluator->read(cluster, request, options.cost, node, &gangs);
        if (evaluator->locality_now() != detail::infeasible)
            return {node, Obstacle::none, 0, "fits without evictions"};
        const bool no_evictions = request.spot && request.borrows;
        const auto missing = evaluator->shortage(!no_evictions);
        const auto kinds = (missing.cpu_milli > 0) + (missing.memory_mib > 0) + (missing.gpus > 0) +
                           static_cast<int>(missing.locality) + (missing.extras != Obstacle::none) +
                           (missing.group != Obstacle::none);
        if (kinds == 0 && (!evaluator->is_bound() || evaluator->best(options).found()))
            return {node, Obstacle::none, 0, "fits after evictions"};
        const std::tuple key(kinds, missing.gpus, missing.memory_mib, missing.cpu_milli);
        if (least && *least <= key) continue;
        least = key;
        result = detail::explain_shortage(cluster, node, request, missing);
        result.node = node;
        const std::string before = no_evictions ? std::string("spot tasks evict no tasks, and ")
                                   : evaluator->size() == 0
                                       ? std::string("it has no potential victims, and ")
                                       : concat("without its ", evaluator->size(), " potential victim",
                                                evaluator->size() == 1 ? "" : "s", ", ");
        result.text = describe(node, before + result.text);
    }
    if (keeps_budgets && result.node) {
        auto breaking = options;
        breaking.break_budgets = true;
        if (const auto found = preempt(cluster, task, breaking).decision) {
            result = {found->node, Obstacle::disruption_budget, 0, ""};
            std::string budgets;
            for (const auto& broken : found->broken_budgets) {
                result.missing += broken.over;
                budgets += (budgets.empty() ? "" : ", ") + gpusched::quoted(inv.budget_names[broken.budget]) +
                           " by " + std::to_string(broken.over) + (broken.over == 1 ? " task" : " tasks");
            }
            result.text =
                describe(found->node, "evictions would help, but exceed disruption budgets: " + budgets);
        }
    }
    if (!result.node)
        result = {std::nullopt, Obstacle::not_eligible, 0,
                  std::string(
                      "no schedulable node has an accepted GPU model, the required labels and no taint that "
                      "repels the task") +
                      (options.filter ? " and passes the filter" : "")};
    return result;
}

}  // namespace gpusched::preemption
