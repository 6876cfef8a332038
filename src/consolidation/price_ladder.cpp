// SPDX-License-Identifier: Apache-2.0
// The prices of a search that looks for cheap gains first, and the choice of points at even distances.
#include "consolidation/price_ladder.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/search.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

namespace gpusched::consolidation::detail {

std::vector<std::int64_t> price_ladder(const Cluster& cluster, const Scope& scope,
                                       const AnyNodeWeight& weight_of_node, std::int64_t capacity,
                                       std::size_t steps, std::int64_t lowest) {
    struct Worth {
        std::int64_t price, weight, cost;
    };
    std::vector<Worth> nodes;
    for (const auto node : cluster.nodes()) {
        if (!scope.may_vacate[index(node)]) continue;
        const auto cost = cost_of_leaving(cluster, scope, node);
        const auto weight = weight_of_node(cluster, node);
        if (cost > 0 && weight > 0)
            nodes.push_back({std::min(highest_price, value_milli(weight, 0, 0) / cost), weight, cost});
    }
    std::sort(nodes.begin(), nodes.end(), [](const Worth& a, const Worth& b) { return a.price > b.price; });
    std::int64_t weight = 0, cost = 0;
    std::size_t used = 0;
    for (; used < nodes.size() && weight < capacity; ++used) {
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
    // Nodes that need moves of other nodes' tasks lie in between: add steps of a seventh between nearby
    // prices.
    for (std::size_t i = 0, known = prices.size(); i + 1 < known && i < 4 * steps; ++i)
        for (auto price = prices[i] * 6 / 7; price > std::max(prices[i + 1] * 15 / 14, prices[i] / 8);
             price = price * 6 / 7)
            prices.push_back(price);
    std::sort(prices.begin(), prices.end(), std::greater{});
    prices.erase(std::unique(prices.begin(), prices.end()), prices.end());
    return prices;
}

AnyPolicies policies_at_level(const AnyPolicies& policies, const Options& at, std::size_t level,
                              std::size_t levels) {
    auto now = with_limits(policies, at);
    now.switches.exchange_steps /= static_cast<std::int64_t>(levels);
    if (level + 1 < levels) {
        now.switches.most_rounds = 1;
        now.switches.deepest = std::min(now.switches.deepest, 2);
    }
    return now;
}

GPUSCHED_EXPORT std::vector<std::size_t> even_steps(std::span<const std::int64_t> numbers, std::size_t most) {
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
        // Leaves enough positions for the remaining steps.
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
