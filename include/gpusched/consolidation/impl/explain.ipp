#pragma once

#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/model/apply.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace GPUSCHED_NAMESPACE::consolidation {

namespace detail {

inline FixedBy fixed_by(const Cluster& cluster, TaskId task, const Options& options) {
    const auto& t = cluster.inventory().tasks;
    const auto i = index(task);
    if (t.locked[i]) return FixedBy::locked;
    if (t.standby[i]) return FixedBy::standby;
    if (cluster.inventory().task_affinities[t.affinities[i]].cpu_local) return FixedBy::cpu_local;
    if (t.how(task) == Mobility::none) return FixedBy::never_moves;
    const auto node = cluster.node_of(task);
    if (std::find(options.exempt.begin(), options.exempt.end(), node) != options.exempt.end())
        return FixedBy::exempt_node;
    const auto job = t.job[i];
    if (options.max_disrupted == 0 ||
        (job != none<JobId> && cluster.inventory().job_max_disrupted[index(job)] == 0))
        return FixedBy::no_disruption;
    if (no_budget_left(cluster.inventory(), task)) return FixedBy::budget;
    return FixedBy::core_member;
}

// Over all nodes that may receive the task: how often each obstacle comes first.
inline Blocker look_for_place(const Cluster& after, const Scope& scope,
                              const std::vector<std::uint8_t>& closed, TaskId task) {
    std::array<std::size_t, enum_names(Obstacle{}).size()> seen{};
    Blocker blocker{.task = task};
    for (const auto node : after.nodes()) {
        if (node == after.node_of(task) || closed[index(node)] || !scope.may_receive[index(node)] ||
            after.occupants(node) == 0)
            continue;
        auto obstacle = find_obstacle(after, task, node);
        if (obstacle == Obstacle::not_eligible) obstacle = find_eligibility_obstacle(after, task, node);
        ++blocker.nodes_looked_at;
        ++seen[static_cast<std::size_t>(obstacle)];
    }
    // Nodes of another kind say nothing new, so the obstacle on nodes of the right kind is named where there is any.
    const auto unsuitable = [](std::size_t o) {
        const auto obstacle = static_cast<Obstacle>(o);
        return obstacle == Obstacle::gpu_model || obstacle == Obstacle::node_selector ||
               obstacle == Obstacle::node_affinity || obstacle == Obstacle::taint ||
               obstacle == Obstacle::cordoned;
    };
    if (seen[0] > 0) {  // it fits somewhere
        blocker.nodes_with_obstacle = 0;
        return blocker;
    }
    for (const bool kind : {false, true})
        for (std::size_t o = 1; o < seen.size(); ++o)
            if (unsuitable(o) == kind && seen[o] > blocker.nodes_with_obstacle &&
                (!kind || blocker.obstacle == Obstacle::none ||
                 unsuitable(static_cast<std::size_t>(blocker.obstacle)))) {
                blocker.obstacle = static_cast<Obstacle>(o);
                blocker.nodes_with_obstacle = seen[o];
            }
    return blocker;
}

}  // namespace detail

GPUSCHED_INLINE Explanation explain(const Cluster& cluster, const Plan& plan, NodeId node,
                                    const Options& options) {
    validate(options, cluster);
    if (!cluster.contains(node))
        throw InvalidInput("node: there is no node " + std::to_string(index(node)) + "; expected less than " +
                           std::to_string(cluster.node_slots()));
    const auto after = apply(cluster, plan);
    const auto scope = make_scope(cluster, options);
    std::vector<std::uint8_t> closed(cluster.node_slots());
    for (const auto vacated : plan.vacated_nodes) closed[index(vacated)] = 1;

    Explanation result{.node = node,
                       .fate = NodeFate::empty,
                       .blockers = {},
                       .received = {},
                       .text = "node " + gpusched::quoted(cluster.name(node))};
    if (cluster.occupants(node) == 0) {
        result.text += " holds no task but daemons to begin with";
        return result;
    }
    if (after.occupants(node) == 0) {
        result.fate = NodeFate::vacated;
        result.text += " is vacated by the plan";
        return result;
    }
    result.fate = NodeFate::not_worthwhile;
    for (const auto task : after.tasks_on(node)) {
        if (cluster.inventory().tasks.daemon[index(task)]) continue;
        if (cluster.node_of(task) != node) {
            result.received.push_back(task);
            continue;
        }
        if (!scope.movable[index(task)]) {
            result.fate = NodeFate::has_fixed;
            result.blockers.push_back({.task = task, .fixed_by = detail::fixed_by(cluster, task, options)});
            continue;
        }
        auto blocker = detail::look_for_place(after, scope, closed, task);
        if (blocker.nodes_looked_at > 0 && blocker.obstacle == Obstacle::none) continue;
        if (result.fate == NodeFate::not_worthwhile) result.fate = NodeFate::has_stuck;
        result.blockers.push_back(std::move(blocker));
    }
    result.text += " stays occupied";
    if (result.fate == NodeFate::not_worthwhile && !result.received.empty()) {
        result.fate = NodeFate::receives;
        result.text += ": the plan moves " + std::to_string(result.received.size()) +
                       (result.received.size() == 1 ? " task" : " tasks") + " onto it";
    }
    if (result.fate == NodeFate::not_worthwhile)
        result.text +=
            std::string(": each of its tasks fits elsewhere, but moving them all was not within the ") +
            (options.max_moves || options.max_move_cost ? "migration budget or the " : "") +
            "limits of the search";
    const char* separator = ": ";
    for (const auto& blocker : result.blockers) {
        result.text += separator + std::string("task ") + gpusched::quoted(cluster.name(blocker.task));
        if (blocker.fixed_by != FixedBy::nothing)
            result.text += " must stay (" + std::string(enum_name(blocker.fixed_by)) + ")";
        else if (blocker.nodes_looked_at == 0)
            result.text += " has no other occupied node to go to";
        else
            result.text += " fits nowhere else (" + std::string(enum_name(blocker.obstacle)) + " on " +
                           std::to_string(blocker.nodes_with_obstacle) + " of " +
                           std::to_string(blocker.nodes_looked_at) +
                           (blocker.nodes_looked_at == 1 ? " node)" : " nodes)");
        separator = "; ";
    }
    return result;
}

}  // namespace GPUSCHED_NAMESPACE::consolidation
