// SPDX-License-Identifier: Apache-2.0
// Goal search: makes empty nodes, or slots for tasks of a shape, at low cost.
#include "consolidation/goal_search.hpp"
#include "consolidation/price_ladder.hpp"
#include "consolidation/slot_bound.hpp"

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/consolidation/bounds.hpp>
#include <gpusched/consolidation/search.hpp>
#include <gpusched/consolidation/threads.hpp>
#include <gpusched/consolidation/waves.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <span>
#include <tuple>
#include <utility>

namespace gpusched::consolidation::detail {

GoalCount::GoalCount(const Cluster& cluster, const Goal& goal) : goal_(goal), counts_(cluster.node_slots()) {
    for (const auto node : goal_nodes(cluster, goal)) counts_[index(node)] = 1;
}

std::int64_t GoalCount::in(const Cluster& cluster) const {
    std::int64_t sum = 0;
    for (const auto node : cluster.nodes()) sum += on(cluster, node);
    return sum;
}

std::int64_t GoalCount::on(const Cluster& cluster, NodeId node) const {
    if (counts_[index(node)] == 0) return 0;
    if (of_nodes()) return cluster.occupants(node) == 0 ? 1 : 0;
    return slots(gpu_count(cluster.idle_gpus(node)), cluster.cpu_free_milli(node),
                 cluster.memory_free_mib(node));
}

std::int64_t GoalCount::on_empty(const Cluster& cluster, NodeId node) const {
    if (counts_[index(node)] == 0) return 0;
    if (of_nodes()) return 1;
    const auto& t = cluster.inventory().tasks;
    auto gpus = static_cast<GpuMask>(cluster.healthy_gpus(node));
    auto cpu = cluster.cpu_free_milli(node), memory = cluster.memory_free_mib(node);
    for (const auto task : cluster.tasks_on(node)) {
        if (t.daemon[index(task)]) {
            gpus &= static_cast<GpuMask>(~cluster.gpus_of(task));
            continue;
        }
        cpu += t.cpu_milli[index(task)];
        memory += t.memory_mib[index(task)];
    }
    return slots(gpu_count(gpus), cpu, memory);
}

std::int64_t GoalCount::taken_by(const Cluster& cluster, TaskId task, NodeId node) const {
    if (counts_[index(node)] == 0) return 0;
    const auto idle = cluster.idle_gpus(node);
    const auto cpu = cluster.cpu_free_milli(node), memory = cluster.memory_free_mib(node);
    const auto gpus = allocation::pick_gpus(allocation::TightestGpu{}, cluster, task, node);
    const auto& t = cluster.inventory().tasks;
    // Cores that are lent to the task were not free before.
    const auto cpu_after =
        std::min(cpu, cluster.cpu_free_milli(node, cluster.lent_to(task)) - t.cpu_milli[index(task)]);
    return slots(gpu_count(idle), cpu, memory) - slots(gpu_count(static_cast<GpuMask>(idle & ~gpus)),
                                                       cpu_after, memory - t.memory_mib[index(task)]);
}

std::int64_t GoalCount::slots(std::int64_t gpus, std::int64_t cpu, std::int64_t memory) const {
    auto most = std::numeric_limits<std::int64_t>::max();
    const auto limit = [&](std::int64_t free, std::int64_t each) {
        if (each > 0) most = std::min(most, std::max<std::int64_t>(0, free) / each);
    };
    limit(gpus, goal_.slots->gpu_count);
    limit(cpu, goal_.slots->cpu_milli);
    limit(memory, goal_.slots->memory_mib);
    return most;
}

// Searches at descending prices until a plan reaches the goal.
static void search_ladder(const Cluster& cluster, const Scope& scope, const AnyPolicies& policies,
                          const GoalCount& goal, const Options& options, const std::vector<WantedMove>* last,
                          ExecutorRef executor, Budget& budget, Result& best) {
    static constexpr std::size_t most_prices = 20;
    Options at = options;
    Rounds rounds(cluster, scope, at, executor, budget);
    const auto& joined = rounds.joined();
    auto missing = goal.target() - best.stats.goal_before;  // weight that a plan needs at least
    std::size_t checked = 0;                                // chains
    // Finds the first chains that suffice: ordering may drop some, and moves may take slots.
    const auto check = [&] {
        for (auto chains = checked + 1; chains <= joined.chains() && !goal.is_reached_by(best); ++chains) {
            const auto weight = joined.sums(chains).gain;
            if (weight < missing) continue;
            auto plan = joined.plan(budget, chains);
            appraise(cluster, policies.node_weight, at.price, at.open_price, plan);
            const auto after = goal.in(apply(cluster, plan.plan));
            // If tasks take about as many slots as they leave, only some of the chains are checked.
            missing = weight + std::max(goal.target() - after, weight / 8);
            if (after <= best.stats.goal_after) continue;
            plan.stats.goal_before = best.stats.goal_before;
            plan.stats.goal_after = after;
            best = std::move(plan);
        }
        checked = joined.chains();
    };
    if (last != nullptr) {
        at.price = std::max<std::int64_t>(1, options.price);
        repeat_moves(rounds, cluster, with_limits(policies, at), *last);
        check();
    }
    // A price of 0 would vacate nodes that add nothing.
    const auto prices = price_ladder(cluster, scope, policies.node_weight, missing, most_prices,
                                     std::max<std::int64_t>(1, options.price));
    for (std::size_t level = 0; level < prices.size() && !goal.is_reached_by(best) && !budget.exhausted();
         ++level) {
        at.price = prices[level];
        const auto now = policies_at_level(policies, at, level, prices.size());
        rounds.run(now, true);
        check();
        if (goal.is_reached_by(best)) break;
        rounds.exchange(now, level);
        check();
    }
    if (!goal.is_reached_by(best) && joined.chains() > 0) {
        missing = joined.sums(joined.chains()).gain;
        checked = joined.chains() - 1;
        check();
    }
    best.stop_reason = joined.stop_reason(budget);
}

// Proves limits of a goal of empty nodes, by the Lagrangian bound of `frontier` on the nodes that count:
// L(p) >= 1000 x nodes gained - p x cost for every plan and every price p.
static void prove_goal(const Cluster& cluster, const Scope& scope, const GoalCount& goal,
                       std::span<const std::int64_t> added, Budget& budget, ExecutorRef executor,
                       Statistics& stats) {
    // From two nodes for one move to one node for a hundred moves.
    std::vector<std::int64_t> prices;
    for (std::int64_t price = 2000; price >= 10; price = price * 4 / 5) prices.push_back(price);
    prices.push_back(0);
    const auto parts = components(cluster);
    std::vector<std::vector<std::int64_t>> most(parts.size(), std::vector<std::int64_t>(prices.size()));
    run_parts(executor, budget, parts.size(), [&](std::size_t part) {
        SlotBound slots(cluster, scope, parts[part], added);
        for (std::size_t p = 0; p < prices.size() && !budget.exhausted(); ++p)
            most[part][p] = slots.value_at_most(prices[p]);
    });
    if (budget.exhausted()) return;
    const auto gained = std::min(stats.goal_after, goal.target()) - stats.goal_before;
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

// Ranks results: closer to the goal, then lower cost at the prices of the options, then lower cost of moves,
// then fewer moves.
static auto closeness(const Result& found, const GoalCount& goal, const Options& options) {
    const auto& stats = found.stats;
    return std::tuple(std::min(stats.goal_after, goal.target()),
                      value_milli(0, stats.relocation_cost, options.price) -
                          opening_milli(stats.opened_weight, options.open_price.value_or(0)),
                      -stats.relocation_cost, -stats.moves);
}

// If a plan leaves more nodes empty than requested, searches for plans that vacate all its nodes but one. The
// nodes with the highest cost are left out first. A node that saves nothing stays vacated.
template <class Keep>
static void leave_surplus(const Cluster& cluster, const Scope& scope, const GoalCount& goal,
                          const AnyPolicies& policies, const Options& options, ExecutorRef executor,
                          Budget& budget, const Result& best, Keep&& keep_closer) {
    static constexpr std::size_t most_tries = 8;
    for (bool saved = true; saved && best.stats.goal_after > goal.target();) {
        const auto cost = best.stats.relocation_cost;
        auto nodes = best.plan.vacated_nodes;
        std::stable_sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
            return cost_of_leaving(cluster, scope, a) > cost_of_leaving(cluster, scope, b);
        });
        saved = false;
        for (std::size_t i = 0; i < std::min(nodes.size(), most_tries) && !saved; ++i) {
            if (budget.exhausted()) return;
            auto at = options;
            at.price = std::max<std::int64_t>(1, options.price);
            at.clear = nodes;
            at.clear->erase(at.clear->begin() + static_cast<std::ptrdiff_t>(i));
            keep_closer(
                search(cluster, make_scope(cluster, at), with_limits(policies, at), at, executor, budget));
            saved = best.stats.relocation_cost < cost;
        }
    }
}

// Orders the first of the moves that the limits of moves and cost allow. Leaves out completed moves, and the
// moves of pending tasks.
static Result order_within(const Cluster& cluster, std::span<const WantedMove> moves, Options options) {
    options.goal.reset();
    constexpr auto any = std::numeric_limits<std::int64_t>::max();
    const auto most_moves = options.max_moves.value_or(any), most_cost = options.max_move_cost.value_or(any);
    std::vector<WantedMove> wanted;
    std::vector<std::size_t> last(cluster.task_slots());  // position of the task's last move
    for (const auto& move : moves) {
        if (!cluster.is_placed(move.task) || cluster.node_of(move.task) == move.to) continue;
        last[index(move.task)] = wanted.size();
        wanted.push_back({move.task, move.to});
    }
    std::vector<WantedMove> kept;
    auto moves_left = most_moves, cost_left = most_cost;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const auto cost = cluster.inventory().tasks.move_cost[index(wanted[i].task)];
        if (last[index(wanted[i].task)] != i || moves_left == 0 || cost > cost_left) continue;
        --moves_left;
        cost_left -= cost;
        kept.push_back(wanted[i]);
    }
    auto found = order_into_waves(cluster, kept, options).result;
    // Hops count, too.
    while (!kept.empty() && (found.stats.moves > most_moves || found.stats.move_cost > most_cost)) {
        kept.pop_back();
        found = order_into_waves(cluster, kept, options).result;
    }
    return found;
}

// Returns the last plan's moves that are still possible, without moves that the goal does not need. The last
// moves are left out first.
template <class Count>
static Result repeat_for_slots(const Cluster& cluster, const GoalCount& goal, const Options& options,
                               std::vector<WantedMove> moves, Budget& budget, Count&& count) {
    static constexpr std::size_t most_tries = 200;
    auto best = order_within(cluster, moves, options);
    count(best);
    for (auto i = moves.size(), tries = most_tries; i-- > 0 && tries-- > 0 && goal.is_reached_by(best);) {
        if (budget.exhausted()) break;
        auto fewer = moves;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        auto found = order_within(cluster, fewer, options);
        count(found);
        if (!goal.is_reached_by(found)) continue;
        best = std::move(found);
        moves = std::move(fewer);
    }
    return best;
}

// The places of the tasks after the plan, in the order of their last moves, if some move more than once.
static std::vector<WantedMove> final_places(const Plan& plan) {
    std::vector<WantedMove> places;
    std::set<TaskId> seen;
    for (auto move = plan.moves.rbegin(); move != plan.moves.rend(); ++move)
        if (seen.insert(move->task).second) places.push_back({move->task, move->to});
    if (places.size() == plan.moves.size()) return {};
    std::ranges::reverse(places);
    return places;
}

// Returns the plan that comes closest, with or without opened nodes, as the options say.
// @param start the empty plan
static Result search_closest(const Cluster& cluster, const GoalCount& goal, const AnyNodeWeight& weight,
                             const Options& options, const std::vector<WantedMove>* last,
                             ExecutorRef executor, Budget& budget, const Result& start) {
    const auto scope = make_scope(cluster, options);
    const auto policies = options.preset == Preset::fast ? presets::fast(weight) : presets::best(weight);
    auto best = start;
    const auto keep_closer = [&](Result found) {
        const bool closer = closeness(found, goal, options) > closeness(best, goal, options);
        keep_better(best, std::move(found), closer);
    };
    const auto count = [&](Result& found) {
        found.stats.goal_before = start.stats.goal_before;
        found.stats.goal_after = goal.in(apply(cluster, found.plan));
    };
    const auto count_and_keep_closer = [&](Result found) {
        count(found);
        keep_closer(std::move(found));
    };
    search_ladder(cluster, scope, policies, goal, options, last, executor, budget, best);
    if (!goal.is_reached_by(best) && !budget.exhausted()) {
        // The ladder vacates cheap nodes first, which may block the last one. So the search also runs without
        // it.
        auto at = options;
        at.price = std::max<std::int64_t>(1, options.price);  // nodes that add nothing are not vacated
        count_and_keep_closer(search(cluster, scope, with_limits(policies, at), at, executor, budget));
    }
    if (goal.of_nodes()) {
        leave_surplus(cluster, scope, goal, policies, options, executor, budget, best, count_and_keep_closer);
        return best;
    }
    const auto add_slots = [&](Result& found) {
        const auto price = found.stats.price;
        make_slots(cluster, scope, goal, policies, options, budget, found);
        appraise(cluster, weight, price, options.open_price, found);
    };
    if (last != nullptr && !budget.exhausted()) {
        auto again = repeat_for_slots(cluster, goal, options, *last, budget, count);
        if (!goal.is_reached_by(again)) {
            add_slots(again);
            // Tasks of the repeated moves may move once more: then they move directly, if that is a plan.
            if (const auto places = final_places(again.plan); !places.empty()) {
                auto limits = options;
                limits.goal.reset();
                auto direct = order_into_waves(cluster, places, limits).result;
                count(direct);
                if (direct.stats.goal_after >= std::min(again.stats.goal_after, goal.target()) &&
                    direct.stats.moves < again.stats.moves && direct.stats.move_cost <= again.stats.move_cost)
                    again = std::move(direct);
            }
        }
        appraise(cluster, weight, options.price, options.open_price, again);
        if (goal.is_reached_by(again)) return again;
    }
    auto alone = start;
    if (!goal.is_reached_by(best)) add_slots(best);
    add_slots(alone);
    keep_closer(std::move(alone));
    return best;
}

Result search_goal(const Cluster& cluster, const Options& given, const Context& context,
                   const std::vector<WantedMove>* last) {
    auto options = given;
    options.goal = with_full_names(cluster, *given.goal);
    require_lp(options.search.bound_method, context);
    Budget budget(context, options.time_limit);
    const Threads threads(options, context);
    const auto executor = threads.executor();
    const GoalCount goal(cluster, *options.goal);
    Result best;
    static_cast<PlanStatistics&>(best.stats) = plan_statistics(cluster, best.plan);
    best.stats.price = options.price;
    best.stats.goal_before = best.stats.goal_after = goal.in(cluster);
    const auto scope = make_scope(cluster, options);
    std::vector<std::int64_t> added(cluster.node_slots());
    for (const auto node : cluster.nodes())
        added[index(node)] =
            cluster.occupants(node) == 0
                ? goal.on(cluster, node)  // an empty node can only lose its units
                : std::max<std::int64_t>(0, goal.on_empty(cluster, node) - goal.on(cluster, node));
    if (!goal.is_reached_by(best)) {
        const auto start = best;
        const auto weight = [&added](const Cluster&, NodeId node) { return added[index(node)]; };
        auto without = options;
        without.open_price.reset();
        best = search_closest(cluster, goal, weight, without, last, executor, budget, start);
        if (options.open_price) {
            auto opening = search_closest(cluster, goal, weight, options, last, executor, budget, start);
            const bool closer = closeness(opening, goal, options) > closeness(best, goal, options);
            keep_better(best, std::move(opening), closer);
            if (budget.exhausted()) best.stop_reason = budget.reason();
            best.stats.open_price = *options.open_price;
        }
    }
    if (goal.of_nodes() && options.search.bound_method != BoundMethod::none && !options.open_price) {
        prove_goal(cluster, scope, goal, added, budget, executor, best.stats);
        if (options.search.bound_method == BoundMethod::lp && best.stats.goal_at_most) {
            auto counted = scope;  // only the nodes that count
            for (const auto node : cluster.nodes())
                if (added[index(node)] == 0) counted.may_vacate[index(node)] = 0;
            const auto gained =
                bound(cluster, counted, BoundMethod::lp, context.lp, budget, executor).vacated_nodes_at_most;
            if (!budget.exhausted())  // an unfinished bound depends on the machine
                best.stats.goal_at_most = std::min(*best.stats.goal_at_most, best.stats.goal_before + gained);
        }
    }
    best.plan.goal = options.goal;
    best.plan.goal_reached = goal.is_reached_by(best);
    best.plan.bound = bound(cluster, scope, options.search.bound_method, context.lp, budget, executor);
    return best;
}

}  // namespace gpusched::consolidation::detail
