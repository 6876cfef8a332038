// SPDX-License-Identifier: Apache-2.0
// Plans along the trade-off between vacated nodes and the cost of moves.
#include "consolidation/price_ladder.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/bounds.hpp>
#include <gpusched/consolidation/frontier.hpp>
#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/search.hpp>
#include <gpusched/consolidation/threads.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <span>
#include <utility>

namespace gpusched::consolidation {

namespace detail {

// Searches at descending prices, and appends the plans in between.
// @param scope of these options
// @return why it ended
static StopReason search_frontier(const Cluster& cluster, const Scope& scope, const AnyPolicies& policies,
                                  const FrontierOptions& options, std::span<const std::int64_t> prices,
                                  ExecutorRef executor, Budget& budget, std::vector<FrontierPoint>& points) {
    Options at = options;
    Rounds rounds(cluster, scope, at, executor, budget);
    const auto& joined = rounds.joined();
    struct Cut {
        std::size_t chains;
        std::int64_t price;
    };
    std::vector<Cut> levels;
    for (std::size_t level = 0; level < prices.size() && !budget.exhausted(); ++level) {
        at.price = prices[level];
        const auto now = policies_at_level(policies, at, level, prices.size());
        rounds.run(now, true);
        rounds.exchange(now, level);
        levels.push_back({joined.chains(), at.price});
    }
    // If many nodes have the same price, the plans before the last of them are points as well.
    std::vector<Cut> cuts;
    const auto gain = [&](std::size_t chains) {
        const auto sums = joined.sums(chains);
        return value_milli(sums.gain, 0, 0) - sums.opening;
    };
    const auto total = levels.empty() ? 0 : joined.sums(levels.back().chains).cost;
    std::size_t from = 0;
    std::int64_t next = 0, best = 0;
    for (const auto& level : levels) {
        for (auto chains = from + 1; chains < level.chains; ++chains) {
            if (joined.sums(chains).cost < next || gain(chains) <= best) continue;
            best = gain(chains);
            next = joined.sums(chains).cost + total / static_cast<std::int64_t>(options.points);
            cuts.push_back({chains, level.price});
        }
        if (level.chains > from) {
            cuts.push_back(level);
            best = std::max(best, gain(level.chains));
            next = joined.sums(level.chains).cost + total / static_cast<std::int64_t>(options.points);
        }
        from = level.chains;
    }

    const auto known = points.size();
    points.resize(known + cuts.size());
    run_parts(executor, budget, cuts.size(), [&](std::size_t i) {
        auto& result = points[known + i].result;
        result = joined.plan(budget, cuts[i].chains);
        appraise(cluster, policies.node_weight, cuts[i].price, options.open_price, result);
    });
    return joined.stop_reason(budget);
}

static Frontier frontier(const Cluster& cluster, const AnyPolicies& policies, const FrontierOptions& options,
                         const Context& context) {
    Budget budget(context, options.time_limit);
    const Threads threads(options, context);
    const auto executor = threads.executor();
    Frontier result;
    std::vector<FrontierPoint> points;
    std::vector<std::int64_t> prices;  // of all searches
    const auto search_with = [&](const FrontierOptions& with, const Scope& scope) {
        const auto most = bound(cluster, scope, BoundMethod::counting, nullptr, budget, executor);
        const auto capacity =
            with.objective == Objective::gpus ? most.vacated_gpus_at_most : most.vacated_nodes_at_most;
        const auto steps =
            price_ladder(cluster, scope, policies.node_weight, capacity, with.points, with.price);
        const auto reason = search_frontier(cluster, scope, policies, with, steps, executor, budget, points);
        if (reason != StopReason::completed) result.stop_reason = reason;
        prices.insert(prices.end(), steps.begin(), steps.end());
        // The last plan is worth at least as much as that of `consolidate`, which has several starts.
        if (!budget.exhausted())
            points.push_back(
                {.result = search(cluster, scope, with_limits(policies, with), with, executor, budget)});
    };
    const auto scope = make_scope(cluster, options);
    // Nodes opened early may be in the way later, so plans that open nothing are searched as well.
    if (options.open_price) {
        auto without = options;
        without.open_price.reset();
        search_with(without, make_scope(cluster, without));
        for (auto& point : points) point.result.stats.open_price = *options.open_price;
    }
    search_with(options, scope);
    std::sort(prices.begin(), prices.end(), std::greater{});
    prices.erase(std::unique(prices.begin(), prices.end()), prices.end());

    const auto gained = [](const FrontierPoint& point) {  // the value at a price of 0
        const auto& stats = point.result.stats;
        return value_milli(stats.vacated_weight, 0, 0) - opening_milli(stats.opened_weight, stats.open_price);
    };
    std::stable_sort(points.begin(), points.end(), [&](const FrontierPoint& a, const FrontierPoint& b) {
        return std::pair(a.result.stats.relocation_cost, -gained(a)) <
               std::pair(b.result.stats.relocation_cost, -gained(b));
    });
    std::vector<FrontierPoint> better;  // than all points of lower cost
    std::vector<std::int64_t> costs;
    for (auto& point : points)
        if (gained(point) > (better.empty() ? 0 : gained(better.back()))) {
            costs.push_back(point.result.stats.relocation_cost);
            better.push_back(std::move(point));
        }
    for (const auto i : even_steps(costs, options.points)) result.points.push_back(std::move(better[i]));

    if (options.search.bound_method != BoundMethod::none) {
        const auto at_most = values_at_most(
            cluster, scope, options.objective, prices,
            options.search.bound_method == BoundMethod::lp ? context.lp : nullptr, budget, executor);
        for (auto& point : result.points) {
            const auto& stats = point.result.stats;
            point.weight_at_most = std::numeric_limits<std::int64_t>::max();
            for (std::size_t p = 0; p < prices.size(); ++p) {
                if (prices[p] == stats.price) point.value_at_most_milli = at_most[p];
                // L(p) + p C
                const auto weight = (at_most[p] - value_milli(0, stats.relocation_cost, prices[p]) +
                                     opening_milli(stats.opened_weight, stats.open_price)) /
                                    milli;
                point.weight_at_most = std::min(point.weight_at_most, weight);
            }
        }
        result.bound_method = enum_name(options.search.bound_method == BoundMethod::lp && budget.exhausted()
                                            ? BoundMethod::counting
                                            : options.search.bound_method);
    }
    if (budget.reason() != StopReason::completed) result.stop_reason = budget.reason();  // in the bounds
    return result;
}

}  // namespace detail

GPUSCHED_EXPORT Frontier frontier(const Cluster& cluster, const FrontierOptions& options,
                                  const Context& context) {
    validate(options, cluster);
    Problems problems;
    check_fields(problems, options);
    if (options.search.polish_time) problems.add("frontier() does not support polish_time");
    if (options.goal) problems.add("frontier() does not support goal");
    problems.throw_if_any();
    detail::require_lp(options.search.bound_method, context);
    return detail::frontier(cluster, make_policies(options.preset, {}, options.objective), options, context);
}

}  // namespace gpusched::consolidation
