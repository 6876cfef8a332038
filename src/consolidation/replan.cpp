// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/consolidation/search.hpp>
#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/replan.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace gpusched::consolidation {

namespace detail {

/// The policies of a search that follows an earlier plan first.
[[nodiscard]] inline AnyPolicies following(const Cluster& cluster, const PlanSpec& last,
                                           AnyPolicies policies) {
    const auto& inv = cluster.inventory();
    PlannedFirst destinations{std::vector<NodeId>(cluster.task_slots(), none<NodeId>),
                              std::move(policies.destination_ranking)};
    VacatedFirst order{std::vector<std::int64_t>(cluster.node_slots()), std::move(policies.node_order)};
    const auto node_named = [&](const std::string& name) {
        const auto found = inv.nodes.names.find(name);
        return found ? make_id<NodeId>(*found) : none<NodeId>;
    };
    for (const auto& name : last.vacated_nodes)
        if (const auto node = node_named(name); node != none<NodeId>) order.turn[index(node)] = -1;
    // A node's turn is that of the first chain that serves it; without chains, that of the first move that leaves it.
    constexpr auto first = std::numeric_limits<std::int64_t>::min() / 2;
    for (std::size_t i = 0; i < last.moves.size(); ++i) {
        const auto& move = last.moves[i];
        const auto task = inv.tasks.names.find(move.task);
        const auto to = node_named(move.to);
        if (task && to != none<NodeId>) destinations.planned[*task] = to;
        const auto source = node_named(move.serves.empty() ? move.from : move.serves);
        if (source == none<NodeId>) continue;
        auto& turn = order.turn[index(source)];
        if (turn != 0) turn = std::min(turn, first + move.chain.value_or(static_cast<std::int64_t>(i)));
    }
    policies.destination_ranking = std::move(destinations);
    policies.node_order = std::move(order);
    policies.switches.most_rounds = 1;
    policies.switches.several_starts = false;
    policies.switches.exchange_steps = 0;
    policies.switches.exact_when_tiny = false;
    return policies;
}

}  // namespace detail

GPUSCHED_EXPORT Result replan(const Cluster& cluster, const PlanSpec& last, const Options& options,
                              const Context& context) {
    validate(options, cluster);
    const Budget clock(context, options.time_limit);
    if (options.goal) throw InvalidInput("goal: replan goes on from a plan without one; call consolidate");
    const auto policies = make_policies(options.preset, {}, options.objective);
    const detail::LastPlan moves(cluster, last);
    auto again = detail::consolidate_by(
        cluster, detail::following(cluster, last, policies), options, context,
        [&](const Scope& scope, const auto& limited, ExecutorRef executor, Budget& budget) {
            return detail::search_again(cluster, scope, limited, moves, options, executor, budget);
        });
    // On few nodes a whole search takes no time to speak of, and one round may be far from it. A little value is given for the moves of
    // the last plan, which somebody may have approved.
    constexpr std::size_t few_nodes = 1000;
    constexpr double enough = 0.995;
    if (cluster.node_count() > few_nodes || again.stop_reason != StopReason::completed) return again;
    auto rest = options;
    if (rest.time_limit) rest.time_limit = std::max(0.0, *rest.time_limit - clock.elapsed_s());
    auto anew = detail::consolidate(cluster, policies, rest, context);
    const bool better =
        static_cast<double>(again.stats.value_milli) < enough * static_cast<double>(anew.stats.value_milli);
    return better ? std::move(anew) : std::move(again);
}

}  // namespace gpusched::consolidation
