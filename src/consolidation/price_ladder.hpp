// SPDX-License-Identifier: Apache-2.0
// Prices that a search tries in turn, and points picked at even distances.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace gpusched::consolidation::detail {

/// Descending prices, the last of them `lowest`: those at which nodes are just worth their own moves, evenly spread over what
/// these cost, as far down as there is room for the weight, and a few below.
template <class Policies>
std::vector<std::int64_t> ladder(const Cluster& cluster, const Scope& scope, const Policies& policies,
                                 std::int64_t room, std::size_t steps, std::int64_t lowest) {
    struct Worth {
        std::int64_t price, weight, cost;
    };
    std::vector<Worth> nodes;
    for (const auto node : cluster.nodes()) {
        if (!scope.may_vacate[index(node)]) continue;
        std::int64_t cost = 0;
        for (const auto task : cluster.tasks_on(node))
            if (scope.movable[index(task)]) cost += cluster.inventory().tasks.move_cost[index(task)];
        const auto weight = static_cast<std::int64_t>(policies.node_weight(cluster, node));
        if (cost > 0 && weight > 0)
            nodes.push_back({std::min(highest_price, value_milli(weight, 0, 0) / cost), weight, cost});
    }
    std::sort(nodes.begin(), nodes.end(), [](const Worth& a, const Worth& b) { return a.price > b.price; });
    std::int64_t weight = 0, cost = 0;
    std::size_t used = 0;
    for (; used < nodes.size() && weight < room; ++used) {
        weight += nodes[used].weight;
        cost += nodes[used].cost;
    }
    std::vector<std::int64_t> prices{lowest};
    const auto add = [&](std::int64_t price) {
        if (price > lowest) prices.push_back(price);
    };
    std::int64_t passed = 0, next = 0;
    for (std::size_t n = 0; n < used; ++n) {
        passed += nodes[n].cost;
        if (passed < next && n + 1 < used) continue;
        add(nodes[n].price);
        next = passed + cost / static_cast<std::int64_t>(steps);
    }
    if (used > 0)
        for (const int part : {2, 4, 8}) add(nodes[used - 1].price / part);
    std::sort(prices.begin(), prices.end(), std::greater{});
    // Nodes that take moves of others as well lie between: steps of a seventh, as far as prices are near each other.
    for (std::size_t i = 0, known = prices.size(); i + 1 < known && i < 4 * steps; ++i)
        for (auto price = prices[i] * 6 / 7; price > std::max(prices[i + 1] * 15 / 14, prices[i] / 8);
             price = price * 6 / 7)
            prices.push_back(price);
    std::sort(prices.begin(), prices.end(), std::greater{});
    prices.erase(std::unique(prices.begin(), prices.end()), prices.end());
    return prices;
}


/// The positions of the first, the last, and between them of the numbers closest to even steps, each once and ascending; all where
/// there are no more than `most`, the last alone for 1.
/// @param numbers ascending, distinct
/// @param most at least 1
[[nodiscard]] inline std::vector<std::size_t> even_steps(std::span<const std::int64_t> numbers,
                                                         std::size_t most) {
    const auto count = numbers.size();
    std::vector<std::size_t> kept;
    std::size_t at = 0;
    for (std::size_t step = 0; count > most && step + 1 < most; ++step) {
        const auto first = static_cast<double>(numbers.front()), last = static_cast<double>(numbers.back());
        const auto target =
            first + (last - first) * static_cast<double>(step) / static_cast<double>(most - 1);
        const auto distance = [&](std::size_t i) {
            return std::abs(static_cast<double>(numbers[i]) - target);
        };
        // As many are left behind each as there are steps to come.
        while (at + (most - step) < count && distance(at + 1) < distance(at)) ++at;
        kept.push_back(at++);
    }
    if (count > most)
        kept.push_back(count - 1);
    else
        for (; at < count; ++at) kept.push_back(at);
    return kept;
}

}  // namespace gpusched::consolidation::detail
