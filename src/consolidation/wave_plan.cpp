// SPDX-License-Identifier: Apache-2.0
#include "consolidation/explain_parts.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/detail/search.hpp>
#include <gpusched/consolidation/plan_statistics.hpp>
#include <gpusched/consolidation/wave_order.hpp>
#include <gpusched/consolidation/wave_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::consolidation {

namespace detail {

void validate_wanted(const Cluster& cluster, std::span<const WantedMove> moves) {
    Problems problems;
    for (std::size_t i = 0; i < moves.size() && !problems.full(); ++i) {
        const auto owner = "move #" + std::to_string(i);
        const auto& move = moves[i];
        if (!cluster.contains(move.task))
            problems.add(owner + ": there is no task " + std::to_string(index(move.task)));
        if (!cluster.contains(move.to))
            problems.add(owner + ": there is no node " + std::to_string(index(move.to)));
        else if ((move.gpus & ~first_gpus(cluster.gpu_count(move.to)) & ~cluster.devices(move.to)) != 0)
            problems.add(owner + ": names GPUs that node " + gpusched::quoted(cluster.name(move.to)) +
                         " lacks; it has " + std::to_string(cluster.gpu_count(move.to)));
    }
    problems.throw_if_any();
}

/// True where the task is when the move has been made.
[[nodiscard]] inline bool is_made(const Cluster& after, const Step& step) {
    return after.node_of(step.task) == step.to && (!step.these_gpus || after.gpus_of(step.task) == step.gpus);
}

/// What nodes are worth by the objective of the options alone.
struct ObjectiveWeight {
    const Options& options;
    [[nodiscard]] std::int64_t node_weight(const Cluster& cluster, NodeId node) const {
        return weight_of(cluster, node, options);
    }
};

/// Says why a wanted move is not made once the others are. What the plan vacates may receive: nothing but its moves vacates it.
MoveExplanation explain_dropped(const Cluster& cluster, Cluster& after, const Scope& scope,
                                std::span<const ClosedBy> closed, const AnyPlacementRule& rule,
                                const WantedMove& move, const Options& options) {
    auto why = explain_move(cluster, after, scope, closed, rule, move.task, move.to, options);
    const bool possible = why.fate == MoveFate::possible;
    if (possible && move.gpus != 0 && !gpus_fit(after, move.task, move.to, move.gpus)) {
        why.fate = MoveFate::obstacle;
        why.obstacle = Obstacle::gpu;
        why.text = "task " + gpusched::quoted(cluster.name(move.task)) + " cannot move to node " +
                   gpusched::quoted(cluster.name(move.to)) +
                   " (gpu): the GPUs that it is to take do not fit it or are in use";
        return why;
    }
    if (possible) why.fate = MoveFate::no_turn;
    why.text = in_words(cluster, why, options, true);
    if (possible)
        why.text += after.occupants(why.from_node) == 1 && !scope.may_vacate[index(why.from_node)]
                        ? "; its node must stay in use"
                        : "; others that move in the same waves, jobs and disruption budgets leave it none";
    return why;
}

/// The positions in the list of moves that could not be made even if all others that wait had left their nodes: they stand in the way
/// of others for nothing.
std::vector<std::size_t> find_hopeless(Cluster cluster, const AnyPlacementRule& rule,
                                       const std::vector<Step>& waiting) {
    for (const auto& step : waiting) cluster.remove(step.task);
    std::vector<std::size_t> hopeless;
    for (const auto& step : waiting) {
        // With fewer tasks about, only the wishes for neighbours, and for even numbers, are harder to grant.
        const auto group = find_group_obstacle(cluster, step.task, step.to);
        const bool possible =
            cluster.inventory().eligible(step.task, step.to) &&
            find_resource_obstacle(cluster, step.task, step.to) == Obstacle::none &&
            (group == Obstacle::none || group == Obstacle::near || group == Obstacle::spread) &&
            (!step.these_gpus || gpus_fit(cluster, step.task, step.to, step.gpus)) &&
            (!rule.is_static() || rule.allows(cluster, step.task, step.to));
        if (!possible) hopeless.push_back(step.chain);
    }
    return hopeless;
}

}  // namespace detail

GPUSCHED_EXPORT OrderedMoves order_into_waves(const Cluster& cluster, std::span<const WantedMove> moves,
                                              const Options& options) {
    validate(options, cluster);
    detail::validate_wanted(cluster, moves);
    const auto scope = make_scope(cluster, options);
    std::vector<std::uint8_t> closed(cluster.node_slots());
    for (const auto node : cluster.nodes()) closed[index(node)] = !scope.receives(node);
    std::vector<std::size_t> last(cluster.task_slots());  // position of the task's last move
    for (std::size_t i = 0; i < moves.size(); ++i) last[index(moves[i].task)] = i;

    std::vector<Step> waiting;
    std::vector<std::size_t> impossible;
    for (std::size_t i = 0; i < moves.size(); ++i) {
        const auto& move = moves[i];
        if (last[index(move.task)] != i) continue;
        const auto from = cluster.is_placed(move.task) ? cluster.node_of(move.task) : none<NodeId>;
        if (scope.movable[index(move.task)] && from != move.to && !closed[index(move.to)])
            waiting.push_back(
                {move.task, from, move.to, move.gpus, static_cast<std::uint32_t>(i), move.gpus != 0});
        else
            impossible.push_back(i);
    }

    OrderedMoves ordered;
    auto& plan = ordered.result.plan;
    auto& stats = ordered.result.stats;
    auto after = cluster;
    auto limits = options;
    // Where moves can never be made, or a task hops and then finds no turn, all is ordered again without these moves.
    for (auto wanted = waiting;;) {
        plan = {};
        stats = {};
        after = cluster;
        limits = options;
        waiting = wanted;
        auto may_vacate = scope.may_vacate;
        while (!waiting.empty()) {
            auto order = order_into_waves(after, waiting, closed, limits, may_vacate);
            if (order.moves.empty()) break;
            for (auto move : order.moves) {
                move.wave += plan.waves;
                plan.moves.push_back(move);
                limits.rule.move(order.after, move.task, move.from, move.to);
                may_vacate[index(move.to)] = 0;  // a node that receives is not vacated later
            }
            plan.waves += order.waves;
            stats.hops += order.hops;
            after = std::move(order.after);
            std::erase_if(waiting, [&](const Step& step) { return detail::is_made(after, step); });
        }
        if (waiting.empty()) break;
        auto left_out = detail::find_hopeless(after, limits.rule, waiting);
        const auto is_stray = [&](const Step& step) {
            return after.node_of(step.task) != step.from &&
                   std::any_of(waiting.begin(), waiting.end(),
                               [&](const Step& left) { return left.task == step.task; });
        };
        if (left_out.empty())
            if (const auto stray = std::find_if(wanted.begin(), wanted.end(), is_stray);
                stray != wanted.end())
                left_out.push_back(stray->chain);
        if (left_out.empty()) break;
        impossible.insert(impossible.end(), left_out.begin(), left_out.end());
        std::erase_if(wanted, [&](const Step& step) {
            return std::find(left_out.begin(), left_out.end(), step.chain) != left_out.end();
        });
    }
    for (const auto& step : waiting) impossible.push_back(step.chain);
    std::sort(impossible.begin(), impossible.end());

    plan.vacated_nodes = vacated_nodes(cluster, after);
    plan.opened_nodes = opened_nodes(cluster, plan.moves);
    static_cast<PlanStatistics&>(stats) = plan_statistics(cluster, after, plan);
    stats.dropped_chains = static_cast<std::int64_t>(impossible.size());
    detail::appraise(cluster, detail::ObjectiveWeight{options}, options.price, options.open_price,
                     ordered.result);
    auto closed_by = detail::closed_nodes(cluster, after, options);
    std::replace(closed_by.begin(), closed_by.end(), ClosedBy::emptied, ClosedBy::none);
    for (const auto i : impossible)
        ordered.dropped.push_back(
            {i, detail::explain_dropped(cluster, after, scope, closed_by, limits.rule, moves[i], options)});
    return ordered;
}

}  // namespace gpusched::consolidation
