// SPDX-License-Identifier: Apache-2.0
// Search: rounds and exchanges from one or several starts; the best plan is kept.
#pragma once

#include <gpusched/consolidation/bounds.hpp>
#include <gpusched/consolidation/policies.hpp>
#include <gpusched/consolidation/rounds.hpp>
#include <gpusched/consolidation/threads.hpp>
#include <gpusched/core/lp.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <typeinfo>
#include <utility>

namespace gpusched::consolidation {
namespace detail {

/// Fills in what the plan is worth.
template <class Policies>
void appraise(const Cluster& cluster, const Policies& policies, std::int64_t price,
              std::optional<std::int64_t> open_price, Result& result) {
    const auto weigh = [&](const std::vector<NodeId>& nodes) {
        std::int64_t sum = 0;
        for (const auto node : nodes) sum += static_cast<std::int64_t>(policies.node_weight(cluster, node));
        return sum;
    };
    auto& stats = result.stats;
    stats.price = price;
    result.plan.price = price > 0 ? std::optional(price) : std::nullopt;
    stats.open_price = open_price.value_or(0);
    stats.vacated_weight = weigh(result.plan.vacated_nodes);
    stats.opened_weight = weigh(result.plan.opened_nodes);
    stats.value_milli = value_milli(stats.vacated_weight, stats.relocation_cost, price) -
                        opening_milli(stats.opened_weight, stats.open_price);
}

/// Leaves a plan that moves nothing, and what the search for it did.
inline void forget_moves(const Cluster& cluster, Result& result) {
    auto& stats = result.stats;
    result.plan = {};
    static_cast<PlanStatistics&>(stats) = plan_statistics(cluster, cluster, result.plan);
    stats.vacated_weight = stats.opened_weight = stats.value_milli = stats.hops = 0;
}

/// Which of two plans is better: the one of higher value, then the one that moves fewer tasks, then the one of lower cost, then the one
/// of fewer moves with hops. The price has a say in the value alone: at a price of 0 as many GPUs by fewer moves are better.
[[nodiscard]] inline auto worth(const Result& result) {
    const auto& stats = result.stats;
    return std::tuple(stats.value_milli, -stats.moved_tasks, -stats.relocation_cost, -stats.moves);
}

/// The paper's choices of everything but what a node is worth, which nodes are vacated, and GPUs.
template <class A, class W, class G>
[[nodiscard]] auto papers_choices(A acceptance, W weight, G picker) {
    return Policies<RandomGroups, FewestPods, GroupOrder, FirstVictims, A, W, G>{
        .acceptance = std::move(acceptance),
        .node_weight = std::move(weight),
        .gpu_picker = std::move(picker),
        .switches = {.shortest_chains_first = false}};
}

/// The search of `fast`: one round of moves that are nested at most twice.
template <class... Kinds>
[[nodiscard]] auto one_shallow_round(Policies<Kinds...> policies) {
    policies.switches = {.deepest = 2, .most_rounds = 1};
    return policies;
}

/// Is that policy, or the one behind one of the types of any.hpp, of that type?
template <class Own, class P>
[[nodiscard]] bool is_a(const P& policy) {
    if constexpr (requires { policy.type(); })
        return policy.type() == typeid(Own);
    else
        return std::same_as<Own, P>;
}

/// Can a policy of that type be one of type `Own`, as far as the type says?
template <class P, class Own>
concept CanBe = std::same_as<P, Own> || requires(const P& policy) { policy.type(); };

/// May the paper's choices stand in for these? A caller's own groups, destinations and victims may be meant as limits.
template <class... Kinds>
[[nodiscard]] bool may_be_the_papers(const Policies<Kinds...>& policies) {
    return is_a<ByGpuModel>(policies.partitioner) && is_a<TightestFit>(policies.destination_ranking) &&
           is_a<CheapestVictims>(policies.ejection_rule);
}

/// One search, or with `Switches::several_starts` several. The exchanges go on from the best plan, and the best of all plans is
/// returned: no start has one of higher value, nor one of the same value with fewer moved tasks.
template <class... Kinds>
Result search(const Cluster& cluster, const Scope& scope, const Policies<Kinds...>& policies,
              const Options& options, ExecutorRef executor, Budget& budget,
              std::optional<std::uint64_t> noise = {}) {
    const auto appraised = [&](Result result) {
        appraise(cluster, policies, options.price, options.open_price, result);
        // Where chains were dropped, nodes may have been opened for less than they cost.
        if (options.open_price && result.stats.value_milli < 0) forget_moves(cluster, result);
        return result;
    };
    auto rounds =
        std::make_unique<Rounds>(cluster, scope, options, executor, budget, noise);  // of the best plan
    rounds->run(policies);
    if (!policies.switches.several_starts && policies.switches.exchange_steps == 0)
        return appraised(rounds->joined().finish(budget));

    auto best = appraised(rounds->joined().plan(budget, rounds->joined().chains()));
    SearchCounters others;  // of the searches that `rounds` is not
    bool tried = true;      // whether `policies` have tried to go on from the best plan
    const auto start = [&](const auto& with, bool by_price, bool tries) {
        if (budget.exhausted()) return;
        auto other = std::make_unique<Rounds>(cluster, scope, options, executor, budget, noise);
        other->run(with, by_price);
        auto plan = appraised(other->joined().plan(budget, other->joined().chains()));
        const bool better = worth(plan) > worth(best);
        others += better ? best.stats : plan.stats;
        if (!better) return;
        best = std::move(plan);
        rounds = std::move(other);
        tried = tries;
    };
    if (policies.switches.several_starts) {
        start(policies, true, true);
        start(one_shallow_round(policies), false, false);
        // Where the types rule it out, that search is not compiled.
        if constexpr (CanBe<decltype(policies.partitioner), ByGpuModel> &&
                      CanBe<decltype(policies.destination_ranking), TightestFit> &&
                      CanBe<decltype(policies.ejection_rule), CheapestVictims>)
            if (may_be_the_papers(policies))
                start(papers_choices(policies.acceptance, policies.node_weight, policies.gpu_picker), false,
                      false);
    }
    if (!budget.exhausted()) {
        if (!tried) rounds->run(policies);
        rounds->exchange(policies);
        auto last = appraised(rounds->joined().finish(budget));
        const SearchCounters own = last.stats;
        if (worth(last) > worth(best)) best = std::move(last);
        static_cast<SearchCounters&>(best.stats) = own;
    }
    best.stats += others;
    best.stop_reason = rounds->joined().stop_reason(budget);
    return best;
}

/// The better of a search that may open nodes and one that may not: what the former opens early may be in its way later.
template <class... Kinds>
Result search_opening(const Cluster& cluster, const Scope& scope, const Policies<Kinds...>& policies,
                      const Options& options, ExecutorRef executor, Budget& budget) {
    auto without = options;
    without.open_price.reset();
    auto best = search(cluster, make_scope(cluster, without), policies, without, executor, budget);
    best.stats.open_price = *options.open_price;
    auto opening = search(cluster, scope, policies, options, executor, budget);
    SearchCounters counters = best.stats;
    counters += opening.stats;
    // Where the nodes to vacate are given, more of them are better for no loss of value.
    const auto asked_for = [&](const Result& result) {
        return std::tuple(result.stats.value_milli, options.clear ? result.stats.vacated_weight : 0,
                          worth(result));
    };
    if (asked_for(opening) > asked_for(best)) std::swap(opening, best);
    if (budget.exhausted()) best.stop_reason = budget.reason();
    static_cast<SearchCounters&>(best.stats) = counters;
    return best;
}

/// The objective whose weights these are; none = they are others.
template <class W>
[[nodiscard]] std::optional<Objective> objective_of(const W& weight) {
    if (is_a<GpuWeight>(weight)) return Objective::gpus;
    if (is_a<UnitWeight>(weight)) return Objective::nodes;
    return std::nullopt;
}

/// @throws InvalidInput for a node with a weight that sums could not hold
template <class W>
void check_weights(const Cluster& cluster, const W& weight) {
    if (objective_of(weight)) return;  // ours
    const auto most = most_node_weight(cluster);
    for (const auto node : cluster.nodes())
        if (const auto found = static_cast<std::int64_t>(weight(cluster, node)); found < 0 || found > most)
            throw InvalidInput(bad_value("node_weight", std::to_string(found), "0 to " + std::to_string(most),
                                         "node " + gpusched::quoted(cluster.name(node))));
}

/// The search without a last plan.
template <class... Kinds>
Result search_anew(const Cluster& cluster, const Scope& scope, const Policies<Kinds...>& policies,
                   const Options& options, ExecutorRef executor, Budget& budget) {
    return options.open_price ? search_opening(cluster, scope, policies, options, executor, budget)
                              : search(cluster, scope, policies, options, executor, budget);
}

/// The one place where options meet policies: the limits of the options become those of the acceptance.
template <class... Kinds>
[[nodiscard]] auto with_limits(const Policies<Kinds...>& policies, const Options& options) {
    if constexpr (TakesLimits<decltype(policies.acceptance)>)
        return with_acceptance(policies, policies.acceptance.with_limits(options));
    else
        return policies;
}

/// What `replan` searches: what is left of the last plan and one round from there, or one round from nothing, whichever is better.
template <class... Kinds>
Result search_again(const Cluster& cluster, const Scope& scope, const Policies<Kinds...>& policies,
                    const LastPlan& last, const Options& options, ExecutorRef executor, Budget& budget) {
    Rounds rounds(cluster, scope, options, executor, budget);
    rounds.repeat(policies, last);
    rounds.run(policies);
    auto best = rounds.joined().finish(budget);
    appraise(cluster, policies, options.price, options.open_price, best);
    if (!budget.exhausted()) {
        auto anew = search_anew(cluster, scope, policies, options, executor, budget);
        SearchCounters counters = best.stats;
        counters += anew.stats;
        if (worth(anew) > worth(best)) best = std::move(anew);
        static_cast<SearchCounters&>(best.stats) = counters;
    }
    if (best.stats.value_milli < 0) forget_moves(cluster, best);
    best.stop_reason = rounds.joined().stop_reason(budget);
    return best;
}

/// The best plan of `first(scope, policies, executor, budget)` and of what polishing finds, with its bound.
template <class... Kinds, class First>
Result consolidate_by(const Cluster& cluster, const Policies<Kinds...>& without_limits,
                      const Options& options, const Context& context, First first) {
    require_lp(options.bound_method, context);
    check_weights(cluster, without_limits.node_weight);
    auto policies = with_limits(without_limits, options);
    if (options.clear) policies.switches.fill_gaps = false;  // no node that was asked for gains by it
    Budget budget(context, options.time_limit);
    const Threads threads(options, context);
    const auto executor = threads.executor();

    const auto scope = make_scope(cluster, options);
    auto best = first(scope, policies, executor, budget);
    if (options.polish_time) {
        const auto first_reason = best.stop_reason;
        // A search asks one budget only: that of polishing ends no later than all the time there is.
        auto time_s = *options.polish_time;
        if (options.time_limit) time_s = std::clamp(*options.time_limit - budget.elapsed_s(), 0.0, time_s);
        Budget polish(context, time_s);
        for (std::uint64_t seed = options.seed + 1; !polish.exhausted() && !budget.exhausted(); ++seed) {
            auto again = options;
            again.seed = seed;
            auto other = search(cluster, scope, policies, again, executor, polish, seed);
            if (worth(other) > worth(best)) best = std::move(other);
        }
        if (polish.reason() == StopReason::cancelled)
            best.stop_reason = StopReason::cancelled;
        else
            best.stop_reason = budget.exhausted() ? budget.reason() : first_reason;
    }
    auto& bound = best.plan.bound;
    bound = detail::bound(cluster, scope, options.bound_method, context.lp, budget, executor);
    const auto objective = objective_of(policies.node_weight);
    if (objective && options.price > 0 && options.bound_method != BoundMethod::none)
        bound.value_at_most =
            values_at_most(cluster, scope, *objective, {&options.price, 1},
                           options.bound_method == BoundMethod::lp ? context.lp : nullptr, budget, executor)
                .front();
    if (best.stop_reason == StopReason::completed) best.stop_reason = budget.reason();  // in the bound
    return best;
}

/// With options that were validated. For the policies of the presets and for AnyPolicies it is compiled in the library.
template <class... Kinds>
Result consolidate(const Cluster& cluster, const Policies<Kinds...>& policies, const Options& options,
                   const Context& context) {
    return consolidate_by(cluster, policies, options, context,
                          [&](const Scope& scope, const auto& limited, ExecutorRef executor, Budget& budget) {
                              return search_anew(cluster, scope, limited, options, executor, budget);
                          });
}

}  // namespace detail

template <class... Kinds>
Result consolidate(const Cluster& cluster, const Policies<Kinds...>& policies, const Options& options,
                   const Context& context) {
    validate(options, cluster, policies);
    return detail::consolidate(cluster, policies, options, context);
}

}  // namespace gpusched::consolidation
