#pragma once

#include <gpusched/consolidation/ejection_rules.hpp>
#include <gpusched/consolidation/explain_move.hpp>
#include <gpusched/consolidation/impl/explain.ipp>
#include <gpusched/consolidation/value.hpp>

#include <algorithm>
#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation {

namespace detail {

// What the node counts for in the value of a plan.
inline std::int64_t weight_of(const Cluster& cluster, NodeId node, const Options& options) {
    return options.objective == Objective::gpus ? gpu_count(cluster.healthy_gpus(node)) : 1;
}

// The fewest movable tasks that could leave the node for the task.
inline std::vector<TaskId> victims_for(const Cluster& before, const Cluster& after, const Scope& scope,
                                       TaskId task, NodeId node) {
    if (find_eligibility_obstacle(after, task, node) != Obstacle::none ||
        find_group_obstacle(after, task, node) != Obstacle::none)
        return {};
    std::vector<Victim> movable, chosen;
    for (const auto other : after.tasks_on(node))
        if (scope.movable[index(other)]) movable.push_back({other, before.node_of(other) != node});
    std::vector<TaskId> victims;
    if (!movable.empty() && EasierVictims{}(after, task, node, movable, chosen))
        for (const auto& victim : chosen) victims.push_back(victim.task);
    return victims;
}

inline std::string in_words(const Cluster& cluster, const MoveExplanation& e, std::int64_t price) {
    auto text = "task " + gpusched::quoted(cluster.name(e.task));
    const auto to = "node " + gpusched::quoted(cluster.name(e.to));
    switch (e.fate) {
    case MoveFate::not_placed:
        return text + " runs nowhere";
    case MoveFate::is_there:
        return text + " is on " + to + " when the plan is done";
    case MoveFate::task_stays:
        return text + " must stay (" + std::string(enum_name(e.fixed_by)) + ")";
    case MoveFate::possible:
        text += " could move to " + to;
        break;
    case MoveFate::node_closed:
        text += " cannot move to " + to + ": the node receives nothing (" + enum_name(e.closed_by) + ")";
        break;
    case MoveFate::obstacle:
        text += " cannot move to " + to + " (" + enum_name(e.obstacle) + ")";
        for (std::size_t v = 0; v < e.victims.size(); ++v)
            text += (v == 0 ? ", unless these leave it: task " : ", task ") +
                    gpusched::quoted(cluster.name(e.victims[v]));
        break;
    }
    return text + "; the move adds " + std::to_string(e.weight) + " to the weight and " +
           std::to_string(e.cost) + " to the cost, " + std::to_string(e.value_milli) +
           " thousandths to the value at the price of " + std::to_string(price);
}

}  // namespace detail

GPUSCHED_INLINE MoveExplanation explain_move(const Cluster& cluster, const Plan& plan, TaskId task,
                                             NodeId node, const Options& options) {
    validate(options, cluster);
    Problems problems;
    if (!cluster.contains(task))
        problems.add("task: there is no task " + std::to_string(index(task)) + "; expected less than " +
                     std::to_string(cluster.task_slots()));
    if (!cluster.contains(node))
        problems.add("node: there is no node " + std::to_string(index(node)) + "; expected less than " +
                     std::to_string(cluster.node_slots()));
    problems.throw_if_any();
    const auto after = apply(cluster, plan);
    const auto scope = make_scope(cluster, options);

    MoveExplanation result{.task = task, .from = after.node_of(task), .to = node, .victims = {}, .text = {}};
    if (!after.is_placed(task) || !cluster.is_placed(task)) {
        result.fate = MoveFate::not_placed;
    } else if (result.from == node) {
        result.fate = MoveFate::is_there;
    } else if (!scope.movable[index(task)]) {
        result.fate = MoveFate::task_stays;
        result.fixed_by = detail::fixed_by(cluster, task, options);
    } else {
        result.closed_by = detail::closed_nodes(cluster, after, options)[index(node)];
        result.obstacle = find_obstacle(after, task, node);
        if (result.obstacle == Obstacle::not_eligible)
            result.obstacle = find_eligibility_obstacle(after, task, node);
        result.fate = result.closed_by != ClosedBy::nothing ? MoveFate::node_closed
                      : result.obstacle != Obstacle::none   ? MoveFate::obstacle
                                                            : MoveFate::possible;
        if (result.fate == MoveFate::obstacle)
            result.victims = detail::victims_for(cluster, after, scope, task, node);
        const auto home = cluster.node_of(task);
        const bool had_moved = result.from != home || after.gpus_of(task) != cluster.gpus_of(task);
        const auto cost = cluster.inventory().tasks.move_cost[index(task)];
        result.cost = node == home ? -cost : had_moved ? 0 : cost;
        if (after.occupants(result.from) == 1 && cluster.occupants(result.from) > 0)
            result.weight += detail::weight_of(cluster, result.from, options);
        if (result.closed_by == ClosedBy::emptied || result.closed_by == ClosedBy::empty)
            result.weight -= detail::weight_of(cluster, node, options);
        result.value_milli = value_milli(result.weight, result.cost, options.price);
    }
    result.text = detail::in_words(cluster, result, options.price);
    return result;
}

}  // namespace GPUSCHED_NAMESPACE::consolidation
