#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/consolidation/bound.hpp>
#include <gpusched/consolidation/detail/goal_search.hpp>
#include <gpusched/consolidation/detail/price_ladder.hpp>
#include <gpusched/consolidation/detail/slot_bound.hpp>
#include <gpusched/consolidation/goal_nodes.hpp>
#include <gpusched/consolidation/plan_statistics.hpp>
#include <gpusched/consolidation/presets.hpp>
#include <gpusched/consolidation/value.hpp>
#include <gpusched/consolidation/wave_order.hpp>
#include <gpusched/model/apply.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation {

namespace detail {

/// What is counted: empty nodes, or slots of a shape.
class Wanted {
  public:
    Wanted(const Cluster& cluster, const Goal& goal) : goal_(goal), counts_(cluster.node_slots()) {
        for (const auto node : goal_nodes(cluster, goal)) counts_[index(node)] = 1;
    }
    /// How many there are to be.
    [[nodiscard]] std::int64_t count() const { return goal_.empty_nodes.value_or(goal_.count.value_or(1)); }
    /// How many the node has.
    [[nodiscard]] std::int64_t on(const Cluster& cluster, NodeId node) const {
        if (counts_[index(node)] == 0) return 0;
        if (is_nodes()) return cluster.occupants(node) == 0 ? 1 : 0;
        return slots(gpu_count(cluster.idle_gpus(node)), cluster.cpu_free_milli(node),
                     cluster.memory_free_mib(node));
    }
    /// How many it would have if it held daemons alone.
    [[nodiscard]] std::int64_t on_empty(const Cluster& cluster, NodeId node) const {
        if (counts_[index(node)] == 0) return 0;
        if (is_nodes()) return 1;
        const auto& t = cluster.inventory().tasks;
        auto taken = static_cast<GpuMask>(cluster.healthy_gpus(node));
        auto cpu = cluster.cpu_free_milli(node), memory = cluster.memory_free_mib(node);
        for (const auto task : cluster.tasks_on(node)) {
            if (t.daemon[index(task)]) {
                taken &= static_cast<GpuMask>(~cluster.gpus_of(task));
                continue;
            }
            cpu += t.cpu_milli[index(task)];
            memory += t.memory_mib[index(task)];
        }
        return slots(gpu_count(taken), cpu, memory);
    }
    [[nodiscard]] std::int64_t in(const Cluster& cluster) const {
        std::int64_t sum = 0;
        for (const auto node : cluster.nodes()) sum += on(cluster, node);
        return sum;
    }

    /// Empty nodes, not slots?
    [[nodiscard]] bool is_nodes() const { return goal_.empty_nodes.has_value(); }

  private:
    [[nodiscard]] std::int64_t slots(std::int64_t gpus, std::int64_t cpu, std::int64_t memory) const {
        auto most = std::numeric_limits<std::int64_t>::max();
        const auto limit = [&](std::int64_t free, std::int64_t each) {
            if (each > 0) most = std::min(most, std::max<std::int64_t>(0, free) / each);
        };
        limit(gpus, goal_.slots->gpu_count);
        limit(cpu, goal_.slots->cpu_milli);
        limit(memory, goal_.slots->memory_mib);
        return most;
    }

    const Goal& goal_;
    std::vector<std::uint8_t> counts_;  // by node
};

/// What each node would add, or an empty one lose, by NodeId.
struct AddedWeight {
    std::span<const std::int64_t> added;
    std::int64_t operator()(const Cluster&, NodeId node) const noexcept { return added[index(node)]; }
};

[[nodiscard]] inline bool reached(const Result& found, const Wanted& wanted) {
    return found.stats.goal_after >= wanted.count();
}

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

/// Makes slots on nodes that stay in use: some of a node's tasks move to where they take fewer slots than they leave. The nodes where
/// that costs least come first. Each task is placed directly.
class SlotMaker {
  public:
    /// @param found whose plan is extended
    SlotMaker(const Cluster& cluster, const Scope& scope, const Wanted& wanted, const Options& options,
              Budget& budget, Result& found)
        : before_(cluster), scope_(scope), wanted_(wanted), options_(options), budget_(budget), found_(found),
          now_(apply(cluster, found.plan)), closed_(cluster.node_slots()), may_empty_(scope.may_vacate),
          rule_(options.rule) {
        for (const auto& move : found.plan.moves) rule_.move(now_, move.task, move.from, move.to);
        first_rule_ = rule_;
        for (const auto node : cluster.nodes()) closed_[index(node)] = !scope.receives(node);
        for (const auto node : found.plan.vacated_nodes) closed_[index(node)] = 1;
        for (const auto& move : found.plan.moves) may_empty_[index(move.to)] = 0;
        now_.commit();
    }

    void run() {
        auto left = options_.max_moves;
        auto cost_left = options_.max_move_cost;
        if (left) *left -= found_.stats.moves;
        if (cost_left) *cost_left -= found_.stats.move_cost;
        const auto start = now_;
        std::vector<std::pair<std::int64_t, NodeId>> queue;  // a heap, the cheapest first
        const auto later = std::greater<>{};
        const auto enter = [&](NodeId node) {
            if (const auto sets = ways(node); !sets.empty()) {
                queue.emplace_back(sets.front().cost, node);
                std::push_heap(queue.begin(), queue.end(), later);
            }
        };
        for (const auto node : now_.nodes()) enter(node);
        auto available = found_.stats.goal_after;
        bool too_dear = false;
        for (int failures = 0; !queue.empty() && available < wanted_.count() && failures < most_failures &&
                               !budget_.exhausted();) {
            const auto [cost, node] = queue.front();
            std::pop_heap(queue.begin(), queue.end(), later);
            queue.pop_back();
            const auto sets = ways(node);  // others may have moved onto it since
            if (sets.empty()) continue;
            if (sets.front().cost > cost) {
                queue.emplace_back(sets.front().cost, node);
                std::push_heap(queue.begin(), queue.end(), later);
                continue;
            }
            std::int64_t gained = 0;
            for (const auto& set : sets) {
                const auto moves = static_cast<std::int64_t>(set.tasks.size());
                if ((left && moves > *left) || (cost_left && set.move_cost > *cost_left)) {
                    too_dear = true;
                    continue;
                }
                gained = try_to_move(node, set);
                if (gained == 0) continue;
                if (left) *left -= moves;
                if (cost_left) *cost_left -= set.move_cost;
                break;
            }
            available += gained;
            failures = gained > 0 ? 0 : failures + 1;
            if (gained > 0) enter(node);
        }
        if (!steps_.empty()) take_over(start);
        if (found_.stop_reason == StopReason::completed)
            found_.stop_reason =
                too_dear && !reached(found_, wanted_) ? StopReason::move_budget : budget_.reason();
    }

  private:
    static constexpr int most_failures = 100, most_sets = 256;  // in a row; for one node
    static constexpr std::size_t most_ways = 8;

    struct Set {
        std::int64_t cost = 0, move_cost = 0;  // the former without tasks that have moved already
        std::vector<TaskId> tasks{};
        bool operator<(const Set& other) const {
            return std::tuple(cost, tasks.size()) < std::tuple(other.cost, other.tasks.size());
        }
    };

    /// Sets of tasks without which the node has more slots, the cheapest first.
    [[nodiscard]] std::vector<Set> ways(NodeId node) {
        if (wanted_.on_empty(now_, node) <= wanted_.on(now_, node)) return {};
        std::vector<TaskId> movable;
        for (const auto task : now_.tasks_on(node))
            if (scope_.movable[index(task)]) movable.push_back(task);
        const auto mark = now_.checkpoint();
        const auto has = wanted_.on(now_, node);
        std::vector<Set> found;
        int looked_at = 0;
        Set set;
        const auto extend = [&](const auto& self, std::size_t from, std::size_t more) -> void {
            if (more == 0) {
                ++looked_at;
                if (wanted_.on(now_, node) > has) found.push_back(set);
                return;
            }
            for (auto next = from; next + more <= movable.size() && looked_at < most_sets; ++next) {
                const auto task = movable[next];
                const auto cost = now_.inventory().tasks.move_cost[index(task)];
                const bool has_moved = before_.node_of(task) != node;
                const auto here = now_.checkpoint();
                now_.remove(task);
                set.tasks.push_back(task);
                set.move_cost += cost;
                set.cost += has_moved ? 0 : cost;
                self(self, next + 1, more - 1);
                set.tasks.pop_back();
                set.move_cost -= cost;
                set.cost -= has_moved ? 0 : cost;
                now_.rollback(here);
            }
        };
        for (std::size_t count = 1;
             count <= movable.size() && looked_at < most_sets && found.size() < most_ways; ++count)
            extend(extend, 0, count);
        now_.rollback(mark);
        std::stable_sort(found.begin(), found.end());
        found.resize(std::min(found.size(), most_ways));
        return found;
    }

    /// @return how many slots more there are; 0: nothing was moved
    [[nodiscard]] std::int64_t try_to_move(NodeId from, const Set& set) {
        const auto mark = now_.checkpoint();
        const auto known = steps_.size();
        auto gained = -wanted_.on(now_, from);
        auto tasks = set.tasks;
        std::stable_sort(tasks.begin(), tasks.end(),
                         [&](TaskId a, TaskId b) { return now_.gpu_milli(a) > now_.gpu_milli(b); });
        for (const auto task : tasks) {
            NodeId best = none<NodeId>;
            std::tuple<std::int64_t, int, std::int64_t> least{};
            GpuMask gpus = 0;
            for (const auto to : now_.nodes()) {
                if (to == from || closed_[index(to)] || now_.occupants(to) == 0 ||
                    find_obstacle(now_, task, to) != Obstacle::none || !rule_.allows(now_, task, to))
                    continue;
                const auto taken = allocation::pick_gpus(allocation::TightestGpu{}, now_, task, to);
                const auto there = wanted_.on(now_, to);
                const auto here = now_.checkpoint();
                now_.assign(task, to, taken);
                const auto lost = there - wanted_.on(now_, to);
                now_.rollback(here);
                const std::tuple loss{lost, gpu_count(now_.idle_gpus(to)), now_.cpu_free_milli(to)};
                if (best == none<NodeId> || loss < least) best = to, least = loss, gpus = taken;
            }
            if (best == none<NodeId>) {
                gained = 0;
                break;
            }
            gained -= std::get<0>(least);
            now_.assign(task, best, gpus);
            rule_.move(now_, task, from, best);
            steps_.push_back({task, from, best, gpus, chains_});
        }
        if (steps_.size() == known + tasks.size()) gained += wanted_.on(now_, from);
        const bool emptied = now_.occupants(from) == 0;
        if (steps_.size() != known + tasks.size() || gained <= 0 ||
            !is_worth(gained, set.cost, options_.price) || (emptied && !may_empty_[index(from)])) {
            now_.rollback(mark);
            for (; steps_.size() > known; steps_.pop_back())
                rule_.move(now_, steps_.back().task, steps_.back().to, from);
            return 0;
        }
        now_.commit();
        if (emptied) closed_[index(from)] = 1;
        for (auto step = known; step < steps_.size(); ++step) may_empty_[index(steps_[step].to)] = 0;
        ++chains_;
        return gained;
    }

    void take_over(const Cluster& start) {
        auto& result = found_;
        Options limits = options_;
        limits.rule = first_rule_;
        if (limits.max_moves) *limits.max_moves -= result.stats.moves;
        if (limits.max_move_cost) *limits.max_move_cost -= result.stats.move_cost;
        auto order = order_into_waves(start, steps_, closed_, limits, may_empty_);
        const auto available = wanted_.in(order.after);
        if (available <= found_.stats.goal_after) return;
        auto& plan = result.plan;
        std::uint32_t chains = 0;
        for (const auto& move : plan.moves)
            if (move.chain != Move::no_chain) chains = std::max(chains, move.chain + 1);
        for (auto move : order.moves) {
            move.wave += plan.waves;
            if (move.chain != Move::no_chain) move.chain += chains;
            plan.moves.push_back(move);
        }
        plan.waves += order.waves;
        plan.vacated_nodes = vacated_nodes(before_, order.after);
        static_cast<PlanStatistics&>(result.stats) = plan_statistics(before_, order.after, plan);
        result.stats.hops += order.hops;
        result.stats.dropped_chains += order.dropped_chains;
        result.stats.goal_after = available;
    }

    const Cluster& before_;
    const Scope& scope_;
    const Wanted& wanted_;
    const Options& options_;
    Budget& budget_;
    Result& found_;
    Cluster now_;
    std::vector<std::uint8_t> closed_, may_empty_;
    AnyPlacementRule rule_, first_rule_;  // in the state of `now_`, and as it was first
    std::vector<Step> steps_;
    std::uint32_t chains_ = 0;
};

/// What no plan can do for a goal of empty nodes, by the Lagrangian bound of `frontier` on the nodes that count: L(p) >= 1000 x nodes
/// gained - p x cost for every plan and every price p.
inline void prove_goal(const Cluster& cluster, const Scope& scope, const Wanted& wanted,
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
        SlotMaker(cluster, scope, wanted, options, budget, found).run();
        appraise(cluster, policies, price, options.open_price, found);
    };
    auto alone = start;
    if (!reached(best, wanted)) make_slots(best);
    make_slots(alone);
    keep_closer(std::move(alone));
    return best;
}

GPUSCHED_INTERNAL Result search_goal(const Cluster& cluster, const Options& options, const Context& context) {
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

}  // namespace GPUSCHED_NAMESPACE::consolidation
