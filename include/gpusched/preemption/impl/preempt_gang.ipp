#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/preemption/detail/cost.hpp>
#include <gpusched/preemption/detail/node_answer.hpp>
#include <gpusched/preemption/detail/placement_check.hpp>
#include <gpusched/preemption/preempt_gang.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

namespace gpusched::preemption {
namespace detail {

// Takes victims off the books of gangs. A gang that breaks costs all of its work, once.
struct Losses {
    std::int64_t gangs = 0, cost = 0;

    void add(const Cluster& cluster, TaskId victim, const Options& options, std::int64_t now,
             GangTable& table) {
        const auto job = cluster.inventory().tasks.job[index(victim)];
        if (job == none<JobId>) {
            ++gangs;
            cost += cost_of(cluster, victim, now, options.cost);
            return;
        }
        auto& gang = table.of_job[index(job)];
        if (gang.lost) return;
        if (gang.surplus > 0) {
            --gang.surplus;
            const auto own = cost_of(cluster, victim, now, options.cost);
            gang.cost -= own;  // what is lost with the others later is without it
            cost += own;
            return;
        }
        gang.lost = true;
        ++gangs;
        cost += gang.cost;
    }
};

}  // namespace detail

GPUSCHED_INLINE GangResult preempt_gang(const Cluster& cluster, std::span<const TaskId> pods,
                                        const Options& options, GangObjective objective) {
    validate(options);
    if (pods.empty()) throw InvalidInput("pods: none; expected at least one");
    const auto& inv = cluster.inventory();
    std::vector<detail::Request> requests;
    std::optional<Level> level;
    std::set<TaskId> distinct;
    for (const auto pod : pods) {
        requests.emplace_back(cluster, pod, options);
        if (!distinct.insert(pod).second)
            throw InvalidInput("pods: " + gpusched::quoted(cluster.name(pod)) + " is listed twice");
        const auto& wish = inv.task_affinities[inv.tasks.affinities[index(pod)]].network_affinity;
        const auto own =
            wish && wish->mode == NetworkMode::required ? std::optional(wish->level) : std::nullopt;
        if (pod != pods.front() && own != level)
            throw InvalidInput("pods: " + gpusched::quoted(cluster.name(pod)) +
                               " requires another network level than the first; expected the same");
        level = own;
        // One domain is looked at at a time, so the gang's own network level needs no further question.
        const auto groups = inv.affinity_memberships(pod);
        requests.back().grouped = !inv.anti_affinity_memberships(pod).empty() ||
                                  std::any_of(groups.begin(), groups.end(), [&](const Membership& m) {
                                      return !inv.affinity_sets[m.set].is_network;
                                  });
    }
    // Domains by name; members that run already say which one.
    std::map<std::string, std::vector<NodeId>> domains;
    std::set<DomainId> bound;
    if (level)
        for (const auto task : cluster.tasks()) {
            const auto job = inv.tasks.job[index(task)];
            if (job != none<JobId> && cluster.is_placed(task) && job == inv.tasks.job[index(pods.front())])
                bound.insert(inv.domain(*level, cluster.node_of(task)));
        }
    for (const auto node : cluster.nodes()) {
        if (!inv.nodes.schedulable[index(node)]) continue;
        if (!level) {
            domains[""].push_back(node);
            continue;
        }
        const auto domain = inv.domain(*level, node);
        if (bound.empty() || (bound.size() == 1 && bound.contains(domain)))
            domains[inv.domain_name(*level, domain)].push_back(node);
    }
    const auto order = order_by(
        pods.size(), [&](std::size_t i) { return std::tuple(-requests[i].gpus, -requests[i].cpu_milli); });

    GangResult result;
    Cluster now(cluster);
    now.forget_history();
    const auto problem = std::make_unique<detail::NodeProblem>();
    const auto search = std::make_unique<detail::Search>();
    detail::GangTable before;
    before.read(cluster, options.cost, requests.front().now);
    const auto by = detail::objective_of(options.policy);
    std::optional<std::tuple<std::int64_t, std::int64_t, std::size_t>> best;
    for (const auto& [name, nodes] : domains) {
        ++result.domains_considered;
        now.rollback(0);
        auto gangs = before;
        detail::Losses losses;
        GangDecision made;
        made.pods.resize(pods.size());
        bool complete = true;
        for (const auto i : order) {
            const auto& request = requests[i];
            detail::Candidate chosen;
            NodeId at = none<NodeId>;
            for (const auto node : nodes) {
                if (!inv.eligible(request.requirement, inv.nodes.node_class[index(node)])) continue;
                problem->forget();
                problem->read(now, request, options.cost, node, &gangs);
                detail::Candidate candidate;
                if (const auto found = problem->locality(0); found != detail::infeasible)
                    candidate.locality = found;
                else if (problem->size() > 0 && !(request.spot && request.borrows))
                    candidate = detail::best_of_node(now, *problem, request, options, *search);
                if (!candidate.found()) continue;
                if (chosen.found()) {
                    const bool fits = candidate.victims == 0, did = chosen.victims == 0;
                    int order_of = did - fits;
                    if (fits && did && request.qos != Qos::none)
                        order_of = int{candidate.locality} - int{chosen.locality};
                    if (!fits && !did) order_of = detail::compare(candidate, chosen, by, true);
                    if (order_of > 0 || (order_of == 0 && now.name(at) < now.name(node))) continue;
                }
                chosen = candidate;
                at = node;
            }
            if (!chosen.found()) {
                complete = false;
                break;
            }
            problem->forget();
            problem->read(now, request, options.cost, at, &gangs);
            auto& decision = made.pods[i];
            detail::decide(*problem, chosen, request.spot, decision);
            const bool holds = detail::placement_holds(now, request, decision);
            GPUSCHED_ASSERT(holds);
            if (!holds) {
                complete = false;
                break;
            }
            for (const auto victim : decision.victims) {
                losses.add(cluster, victim, options, request.now, gangs);
                made.victims.push_back(victim);
                now.remove(victim);
            }
            now.assign(pods[i], decision.node, decision.gpus);
        }
        if (!complete) continue;
        std::tuple key(losses.cost, losses.gangs, made.victims.size());
        if (objective == GangObjective::lost_gangs) key = {losses.gangs, losses.cost, made.victims.size()};
        if (best && *best <= key) continue;
        best = key;
        std::sort(made.victims.begin(), made.victims.end());
        made.lost_gangs = losses.gangs;
        made.cost = losses.cost;
        result.decision = std::move(made);
    }
    return result;
}

GPUSCHED_INLINE Plan to_plan(const GangDecision& decision, std::span<const TaskId> pods) {
    Plan plan;
    plan.evictions = decision.victims;
    for (std::size_t i = 0; i < pods.size(); ++i)
        plan.placements.push_back({pods[i], decision.pods[i].node, decision.pods[i].gpus});
    return plan;
}

}  // namespace gpusched::preemption
