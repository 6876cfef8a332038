// SPDX-License-Identifier: Apache-2.0
#include "consolidation/goal_search.hpp"
#include "consolidation/price_ladder.hpp"
#include "consolidation/slot_bound.hpp"
#include "consolidation/slot_maker.hpp"
#include "consolidation/wanted.hpp"

#include <gpusched/consolidation/bound.hpp>
#include <gpusched/consolidation/goal_nodes.hpp>
#include <gpusched/consolidation/plan_statistics.hpp>
#include <gpusched/consolidation/presets.hpp>
#include <gpusched/consolidation/value.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::consolidation {

namespace detail {

/// What each node would add, or an empty one lose, by NodeId.
struct AddedWeight {
    std::span<const std::int64_t> added;
    std::int64_t operator()(const Cluster&, NodeId node) const noexcept { return added[index(node)]; }
};

template <class Policies>
void go_for(const Cluster& cluster, const Scope& scope, const Policies& policies, const Wanted& wanted,
            const Options& options, ExecutorRef executor, Budget& budget, Result& best) {
    static constexpr std::size_t prices_apart = 20;
    Options at = options;
    Rounds rounds(cluster, scope, at, executor, budget);
    const auto& joined = rounds.joined();
    auto missing = wanted.count() - best.stats.goal_before;  // weight that a plan needs at least
    std::size_t looked_at = 0;                               // chains
    // The first chains that are enough, if ordering them into waves loses none and nothing moves onto slots.
    const auto look = [&] {
        for (auto chains = looked_at + 1; chains <= joined.chains() && !reached(best, wanted); ++chains) {
            if (joined.weight(chains) < missing) continue;
            auto plan = joined.plan(budget, chains);
            appraise(cluster, policies, at.price, at.open_price, plan);
            const auto after = wanted.in(apply(cluster, plan.plan));
            // Where tasks take about as many slots as they leave, not every chain is worth a look.
            missing = joined.weight(chains) + std::max(wanted.count() - after, joined.weight(chains) / 8);
            if (after <= best.stats.goal_after) continue;
            plan.stats.goal_before = best.stats.goal_before;
            plan.stats.goal_after = after;
            best = std::move(plan);
        }
        looked_at = joined.chains();
    };
    // At a price of 0 nodes that add nothing would be vacated as well.
    const auto prices =
        ladder(cluster, scope, policies, missing, prices_apart, std::max<std::int64_t>(1, options.price));
    for (std::size_t level = 0; level < prices.size() && !reached(best, wanted) && !budget.exhausted();
         ++level) {
        at.price = prices[level];
        auto now = with_limits(policies, at);
        now.switches.exchange_steps /= static_cast<std::int64_t>(prices.size());
        if (level + 1 < prices.size()) {
            now.switches.most_rounds = 1;
            now.switches.deepest = std::min(now.switches.deepest, 2);
        }
        rounds.run(now, true);
        look();
        if (reached(best, wanted)) break;
        rounds.exchange(now, level);
        look();
    }
    if (!reached(best, wanted) && joined.chains() > 0) {
        missing = joined.weight(joined.chains());
        looked_at = joined.chains() - 1;
        look();
    }
    best.stop_reason = joined.stop_reason(budget);
}

/// What no plan can do for a goal of empty nodes, by the Lagrangian bound of `frontier` on the nodes that count: L(p) >= 1000 x nodes
/// gained - p x cost for every plan and every price p.
static void prove_goal(const Cluster& cluster, const Scope& scope, const Wanted& wanted,
                       std::span<const std::int64_t> added, Budget& budget, ExecutorRef executor,
                       Statistics& stats) {
    // From two nodes for one move to one node for a hundred moves.
    std::vector<std::int64_t> prices;
    for (std::int64_t price = 2000; price >= 10; price = price * 4 / 5) prices.push_back(price);
    prices.push_back(0);
    const auto parts = components(cluster);
    std::vector<std::vector<std::int64_t>> most(parts.size(), std::vector<std::int64_t>(prices.size()));
    auto one = [&](std::size_t part) {
        SlotBound slots(cluster, scope, parts[part], added);
        for (std::size_t p = 0; p < prices.size() && !budget.exhausted(); ++p)
            most[part][p] = slots.value_at_most(prices[p]);
    };
    auto watch = [&] { (void)budget.exhausted(); };
    executor.run(parts.size(), IndexTask(one), WaitTask(watch));
    if (budget.exhausted()) return;
    const auto gained = std::min(stats.goal_after, wanted.count()) - stats.goal_before;
    stats.goal_cost_at_least = 0;
    for (std::size_t p = 0; p < prices.size(); ++p) {
        std::int64_t sum = 0;
        for (const auto& part : most) sum += part[p];
        if (prices[p] == 0)
            stats.goal_at_most = stats.goal_before + sum / 1000;
        else if (1000 * gained > sum)
            stats.goal_cost_at_least =
                std::max(*stats.goal_cost_at_least, (1000 * gained - sum + prices[p] - 1) / prices[p]);
    }
}

/// Which of two results is closer to the goal; of two that reach it, the one that costs less at the prices of the options, then the one
/// whose moves cost less, then the one of fewer moves.
[[nodiscard]] inline auto closeness(const Result& found, const Wanted& wanted, const Options& options) {
    const auto& stats = found.stats;
    return std::tuple(std::min(stats.goal_after, wanted.count()),
                      value_milli(0, stats.relocation_cost, options.price) -
                          opening_milli(stats.opened_weight, options.open_price.value_or(0)),
                      -stats.relocation_cost, -stats.moves);
}

/// Where a plan leaves more nodes empty than are wanted: searches for plans that vacate all its nodes but one, those first without which
/// most is saved, and offers them to `keep_closer`. A node that saves nothing stays vacated.
template <class Policies, class Keep>
void leave_surplus(const Cluster& cluster, const Wanted& wanted, const Policies& policies,
                   const Options& options, ExecutorRef executor, Budget& budget, const Result& best,
                   Keep&& keep_closer) {
    static constexpr std::size_t most_tries = 8;
    const auto cost_of = [&](NodeId node) {
        std::int64_t cost = 0;
        for (const auto task : cluster.tasks_on(node))
            if (!cluster.inventory().tasks.daemon[index(task)])
                cost += cluster.inventory().tasks.move_cost[index(task)];
        return cost;
    };
    for (bool saved = true; saved && best.stats.goal_after > wanted.count();) {
        const auto cost = best.stats.relocation_cost;
        auto nodes = best.plan.vacated_nodes;
        std::stable_sort(nodes.begin(), nodes.end(),
                         [&](NodeId a, NodeId b) { return cost_of(a) > cost_of(b); });
        saved = false;
        for (std::size_t i = 0; i < std::min(nodes.size(), most_tries) && !saved; ++i) {
            if (budget.exhausted()) return;
            auto at = options;
            at.price = std::max<std::int64_t>(1, options.price);
            at.clear = nodes;
            at.clear->erase(at.clear->begin() + static_cast<std::ptrdiff_t>(i));
            auto found =
                search(cluster, make_scope(cluster, at), with_limits(policies, at), at, executor, budget);
            found.stats.goal_before = best.stats.goal_before;
            found.stats.goal_after = wanted.in(apply(cluster, found.plan));
            keep_closer(std::move(found));
            saved = best.stats.relocation_cost < cost;
        }
    }
}

/// The plan that comes closest, with nodes that are opened or not, as the options say.
/// @param start the empty plan
[[nodiscard]] inline Result closest(const Cluster& cluster, const Wanted& wanted, const AddedWeight& weight,
                                    const Options& options, ExecutorRef executor, Budget& budget,
                                    const Result& start) {
    const auto scope = make_scope(cluster, options);
    const auto policies = options.preset == Preset::fast ? presets::fast(weight) : presets::best(weight);
    auto best = start;
    const auto keep_closer = [&](Result found) {
        SearchCounters counters = best.stats;
        counters += found.stats;
        if (closeness(found, wanted, options) > closeness(best, wanted, options)) best = std::move(found);
        static_cast<SearchCounters&>(best.stats) = counters;
    };
    go_for(cluster, scope, policies, wanted, options, executor, budget, best);
    if (!reached(best, wanted) && !budget.exhausted()) {
        // The ladder takes what is cheap first, which may be in the way of the last node: the search without it.
        auto at = options;
        at.price = std::max<std::int64_t>(1, options.price);  // nodes that add nothing are not vacated
        auto found = search(cluster, scope, with_limits(policies, at), at, executor, budget);
        found.stats.goal_before = start.stats.goal_before;
        found.stats.goal_after = wanted.in(apply(cluster, found.plan));
        keep_closer(std::move(found));
    }
    if (wanted.is_nodes()) {
        leave_surplus(cluster, wanted, policies, options, executor, budget, best, keep_closer);
        return best;
    }
    const auto make_slots = [&](Result& found) {
        const auto price = found.stats.price;
        SlotMaker(cluster, scope, wanted, policies, options, budget, found).run();
        appraise(cluster, policies, price, options.open_price, found);
    };
    auto alone = start;
    if (!reached(best, wanted)) make_slots(best);
    make_slots(alone);
    keep_closer(std::move(alone));
    return best;
}

Result search_goal(const Cluster& cluster, const Options& options, const Context& context) {
    require_lp(options.bound_method, context);
    Budget budget(context, options.time_limit);
    const Threads threads(options, context);
    const auto executor = threads.executor();
    const Wanted wanted(cluster, *options.goal);
    Result best;
    static_cast<PlanStatistics&>(best.stats) = plan_statistics(cluster, best.plan);
    best.stats.price = options.price;
    best.stats.goal_before = best.stats.goal_after = wanted.in(cluster);
    const auto scope = make_scope(cluster, options);
    std::vector<std::int64_t> added(cluster.node_slots());
    for (const auto node : cluster.nodes())
        // An empty node has nothing to add, and all that it has to lose.
        added[index(node)] =
            cluster.occupants(node) == 0
                ? wanted.on(cluster, node)
                : std::max<std::int64_t>(0, wanted.on_empty(cluster, node) - wanted.on(cluster, node));
    if (!reached(best, wanted)) {
        const auto start = best;
        auto without = options;
        without.open_price.reset();
        best = closest(cluster, wanted, {added}, without, executor, budget, start);
        if (options.open_price) {
            auto opening = closest(cluster, wanted, {added}, options, executor, budget, start);
            SearchCounters counters = best.stats;
            counters += opening.stats;
            if (closeness(opening, wanted, options) > closeness(best, wanted, options))
                std::swap(opening, best);
            if (budget.exhausted()) best.stop_reason = budget.reason();
            static_cast<SearchCounters&>(best.stats) = counters;
            best.stats.open_price = *options.open_price;
        }
    }
    if (wanted.is_nodes() && options.bound_method != BoundMethod::none && !options.open_price)
        prove_goal(cluster, scope, wanted, added, budget, executor, best.stats);
    best.plan.goal = options.goal;
    best.plan.goal_reached = reached(best, wanted);
    best.plan.bound = bound(cluster, scope, options.bound_method, context.lp, budget, executor);
    return best;
}

}  // namespace detail

}  // namespace gpusched::consolidation
