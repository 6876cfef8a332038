#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/preemption/detail/node_answer.hpp>
#include <gpusched/preemption/detail/placement_check.hpp>
#include <gpusched/preemption/detail/search.hpp>
#include <gpusched/preemption/preempt.hpp>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

namespace gpusched::preemption {
namespace detail {

GPUSCHED_INLINE Objective objective_of(Policy policy) noexcept {
    return policy == Policy::imp || policy == Policy::first_fit || policy == Policy::reprieve
               ? Objective::fewest
           : policy == Policy::exhaustive ? Objective::score
                                          : Objective::cost;
}

GPUSCHED_INLINE Candidate best_of_node(const Cluster& cluster, const NodeProblem& node,
                                       const Request& request, const Options& options, Search& search) {
    switch (options.policy) {
    case Policy::spot:
        return search.cheapest_prefix(node, request);
    case Policy::first_fit:
        return search.first_fit(node, request);
    case Policy::reprieve:
        return search.reprieve(cluster, node, request);
    default:
        break;
    }
    const auto objective = objective_of(options.policy);
    return options.engine == Engine::plain ? search.plain(node, request, objective)
                                           : search.best(node, request, objective);
}

GPUSCHED_INLINE void decide(const NodeProblem& node, const Candidate& candidate, bool spot, Decision& d) {
    d.victims.clear();  // its memory stays
    d.score.reset();
    d.priority_sum = d.cost = 0;
    d.vacates = node.vacated_by(candidate.victims);
    d.node = node.node();
    for_each_victim(candidate.victims, [&](int i) { d.victims.push_back(node.victim(i).task); });
    std::sort(d.victims.begin(), d.victims.end());
    d.gpus = node.choose_gpus(candidate.victims);
    d.topology = static_cast<topology::GpuLocality>(candidate.locality);
    if (candidate.victims == 0) return;
    if (!spot) d.score = candidate.score;
    d.priority_sum = candidate.priority_sum;
    d.cost = candidate.cost;
}

// Kubernetes' order of nodes (pickOneNodeForPreemption): lower is better.
inline auto importance(const Cluster& cluster, const NodeProblem& node, const Candidate& candidate) {
    std::int64_t since = INT64_MAX;
    for_each_victim(candidate.victims, [&](int i) {
        const auto& v = node.victim(i);
        if (v.priority == candidate.max_priority)
            since = std::min(since, cluster.inventory().tasks.start_time[index(v.task)]);
    });
    return std::tuple(candidate.max_priority, candidate.priority_sum, candidate.count, -since);
}

}  // namespace detail

GPUSCHED_INLINE Result preempt(const Cluster& cluster, TaskId task, const Options& options) {
    validate(options);
    const detail::Request request(cluster, task, options);
    const auto& inv = cluster.inventory();
    const auto problem = std::make_unique<detail::NodeProblem>();
    const auto search = std::make_unique<detail::Search>();
    Result result;

    const auto may_run = [&](NodeId node) {
        return inv.nodes.schedulable[index(node)] != 0 &&
               inv.eligible(request.requirement, inv.nodes.node_class[index(node)]);
    };
    const auto earlier = [&](NodeId a, NodeId b) {
        return b == none<NodeId> || cluster.name(a) < cluster.name(b);
    };

    // Without evicting anybody.
    NodeId best = none<NodeId>;
    std::uint8_t closest = detail::infeasible;
    for (const auto node : cluster.nodes()) {
        if (!may_run(node)) continue;
        ++result.stats.nodes_considered;
        problem->read(cluster, request, options.cost, node);
        auto found = problem->locality(0);
        if (found == detail::infeasible) continue;
        if (request.qos == Qos::none) found = 0;
        if (found < closest || (found == closest && earlier(node, best))) best = node, closest = found;
    }
    detail::Candidate chosen;
    if (best != none<NodeId>) {
        problem->read(cluster, request, options.cost, best);
        chosen.locality = problem->locality(0);
        detail::decide(*problem, chosen, request.spot, result.decision.emplace());
        GPUSCHED_ASSERT(detail::placement_holds(cluster, request, *result.decision));
        return result;
    }
    if (request.spot && request.borrows) return result;  // new spot tasks never preempt

    detail::GangTable gangs;
    if (request.spot) gangs.read(cluster, options.cost, request.now);
    const auto objective = detail::objective_of(options.policy);
    for (const auto node : cluster.nodes()) {
        if (!may_run(node)) continue;
        problem->read(cluster, request, options.cost, node, request.spot ? &gangs : nullptr);
        if (problem->size() == 0) continue;
        const auto candidate = detail::best_of_node(cluster, *problem, request, options, *search);
        if (!candidate.found()) continue;
        ++result.stats.candidate_nodes;
        if (chosen.found()) {
            if (options.policy == Policy::reprieve) {
                detail::NodeProblem& other = *problem;
                const auto now = detail::importance(cluster, other, candidate);
                other.read(cluster, request, options.cost, best);
                const auto before = detail::importance(cluster, other, chosen);
                if (now > before || (now == before && !earlier(node, best))) continue;
            } else {
                const int order = detail::compare(candidate, chosen, objective, true);
                if (order > 0 || (order == 0 && !earlier(node, best))) continue;
            }
        }
        best = node;
        chosen = candidate;
        if (options.policy == Policy::first_fit) break;
    }
    result.stats.sets_checked = search->steps();
    result.proven = search->proven();
    if (!chosen.found()) return result;
    problem->read(cluster, request, options.cost, best, request.spot ? &gangs : nullptr);
    Decision decision;
    detail::decide(*problem, chosen, request.spot, decision);
    const bool holds = detail::placement_holds(cluster, request, decision);
    GPUSCHED_ASSERT(holds);
    if (holds) result.decision = std::move(decision);
    return result;
}

GPUSCHED_INLINE MinimalSets minimal_victim_sets(const Cluster& cluster, TaskId task, NodeId node,
                                                const Options& options) {
    validate(options);
    const detail::Request request(cluster, task, options);
    if (index(node) >= cluster.node_count())
        throw InvalidInput(bad_value("node", "#" + std::to_string(index(node)),
                                     "below " + std::to_string(cluster.node_count())));
    MinimalSets result;
    const auto& inv = cluster.inventory();
    if (!inv.nodes.schedulable[index(node)] ||
        !inv.eligible(request.requirement, inv.nodes.node_class[index(node)]))
        return result;
    const auto problem = std::make_unique<detail::NodeProblem>();
    const auto search = std::make_unique<detail::Search>();
    problem->read(cluster, request, options.cost, node);
    std::vector<detail::VictimSet> sets;
    if (request.spot && request.borrows) {
        if (problem->locality(0) != detail::infeasible) sets.push_back(0);
    } else {
        search->minimal_sets(*problem, request, sets);
    }
    result.proven = search->proven();
    for (const auto set : sets) {
        auto& victims = result.sets.emplace_back();
        detail::for_each_victim(set, [&](int i) { victims.push_back(problem->victim(i).task); });
        std::sort(victims.begin(), victims.end());
    }
    std::sort(result.sets.begin(), result.sets.end());
    return result;
}

GPUSCHED_INLINE Plan to_plan(const Decision& decision, TaskId task) {
    Plan plan;
    plan.evictions = decision.victims;
    plan.placements.push_back({task, decision.node, decision.gpus});
    if (decision.vacates) plan.vacated_nodes.push_back(decision.node);
    return plan;
}

}  // namespace gpusched::preemption
