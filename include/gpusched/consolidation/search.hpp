// SPDX-License-Identifier: Apache-2.0
// consolidate() with policies: rounds and exchanges from one or several starts; the best plan is kept.
#pragma once

#include <gpusched/consolidation/bounds.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/policies.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/rounds.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/threads.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

namespace gpusched::consolidation {
namespace detail {

/// Fills in the plan's value.
template <class Weight>
void appraise(const Cluster& cluster, const Weight& node_weight, std::int64_t price,
              std::optional<std::int64_t> open_price, Result& result) {
    const auto weigh = [&](const std::vector<NodeId>& nodes) {
        std::int64_t sum = 0;
        for (const auto node : nodes) sum += static_cast<std::int64_t>(node_weight(cluster, node));
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

/// Replaces the plan by one without moves, and keeps the counters of the search.
void clear_plan(const Cluster& cluster, Result& result);

/// Ranks plans: higher value, then fewer moved tasks, then lower cost, then fewer moves with hops. The price
/// counts only in the value: at a price of 0 the same GPUs with fewer moves are better.
[[nodiscard]] inline auto worth(const Result& result) {
    const auto& stats = result.stats;
    return std::tuple(stats.value_milli, -stats.moved_tasks, -stats.relocation_cost, -stats.moves);
}

/// Returns whether a policy has type `Own`, or holds a policy of that type (named.hpp).
template <class Own, class P>
[[nodiscard]] bool is_a(const P& policy) {
    if constexpr (requires { policy.type(); })
        return policy.type() == typeid(Own);
    else
        return std::same_as<Own, P>;
}
/// False if the type alone rules that out.
template <class P, class Own>
concept CanBe = std::same_as<P, Own> || requires(const P& policy) { policy.type(); };

/// The paper's policies, with these choices of acceptance, weight and GPUs.
template <class A, class W, class G>
[[nodiscard]] auto paper_policies(A acceptance, W weight, G picker) {
    return Policies<RandomGroups, FewestPods, GroupOrder, FirstVictims, A, W, G>{
        .acceptance = std::move(acceptance),
        .node_weight = std::move(weight),
        .gpu_picker = std::move(picker),
        .switches = {.shortest_chains_first = false}};
}

/// The switches of `fast`: one round of moves that are nested at most twice.
inline constexpr Switches one_shallow_round{.deepest = 2, .most_rounds = 1};

/// One search, or several with `Switches::several_starts`. The exchanges continue from the best plan, and the
/// best of all plans is returned.
template <class... Kinds>
Result search(const Cluster& cluster, const Scope& scope, const Policies<Kinds...>& policies,
              const Options& options, ExecutorRef executor, Budget& budget,
              std::optional<std::uint64_t> noise = {}) {
    const auto appraised = [&](Result result) {
        appraise(cluster, policies.node_weight, options.price, options.open_price, result);
        // If chains were dropped, the opened nodes may cost more than the plan gains.
        if (options.open_price && result.stats.value_milli < 0) clear_plan(cluster, result);
        return result;
    };
    auto rounds =
        std::make_unique<Rounds>(cluster, scope, options, executor, budget, noise);  // of the best plan
    rounds->run(policies);
    if (!policies.switches.several_starts && policies.switches.exchange_steps == 0)
        return appraised(rounds->joined().finish(budget));

    auto best = appraised(rounds->joined().plan(budget, rounds->joined().chains()));
    SearchCounters others;  // of the searches other than `rounds`
    bool continued = true;  // whether the rounds of the best plan ended with `policies` and found no more
    const auto start = [&](const auto& with, bool by_price, bool continues) {
        if (budget.exhausted()) return;
        auto other = std::make_unique<Rounds>(cluster, scope, options, executor, budget, noise);
        other->run(with, by_price);
        auto plan = appraised(other->joined().plan(budget, other->joined().chains()));
        const bool better = worth(plan) > worth(best);
        others += better ? best.stats : plan.stats;
        if (!better) return;
        best = std::move(plan);
        rounds = std::move(other);
        continued = continues;
    };
    if (policies.switches.several_starts) {
        start(policies, true, true);
        auto shallow = policies;
        shallow.switches = one_shallow_round;
        start(shallow, false, false);
        // A caller's own groups, destinations and victims may be meant as limits. Then the paper's do not
        // replace them.
        if constexpr (CanBe<decltype(policies.partitioner), ByGpuModel> &&
                      CanBe<decltype(policies.destination_ranking), TightestFit> &&
                      CanBe<decltype(policies.ejection_rule), CheapestVictims>)
            if (is_a<ByGpuModel>(policies.partitioner) && is_a<TightestFit>(policies.destination_ranking) &&
                is_a<CheapestVictims>(policies.ejection_rule))
                start(paper_policies(policies.acceptance, policies.node_weight, policies.gpu_picker), false,
                      false);
    }
    if (!budget.exhausted()) {
        if (!continued) rounds->run(policies);
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

/// The better of a search that may open nodes and one that may not: nodes opened early may be in the way
/// later.
template <class... Kinds>
Result search_opening(const Cluster& cluster, const Scope& scope, const Policies<Kinds...>& policies,
                      const Options& options, ExecutorRef executor, Budget& budget) {
    auto without = options;
    without.open_price.reset();
    auto best = search(cluster, make_scope(cluster, without), policies, without, executor, budget);
    best.stats.open_price = *options.open_price;
    auto opening = search(cluster, scope, policies, options, executor, budget);
    // With `clear`, more vacated nodes are better at the same value.
    const auto rank = [&](const Result& result) {
        return std::tuple(result.stats.value_milli, options.clear ? result.stats.vacated_weight : 0,
                          worth(result));
    };
    const bool better = rank(opening) > rank(best);
    keep_better(best, std::move(opening), better);
    if (budget.exhausted()) best.stop_reason = budget.reason();
    return best;
}

/// The search without an earlier plan, with or without opening nodes.
template <class... Kinds>
Result search_from_scratch(const Cluster& cluster, const Scope& scope, const Policies<Kinds...>& policies,
                           const Options& options, ExecutorRef executor, Budget& budget) {
    return options.open_price ? search_opening(cluster, scope, policies, options, executor, budget)
                              : search(cluster, scope, policies, options, executor, budget);
}

/// Returns the objective with these weights; none for other weights.
template <class W>
[[nodiscard]] std::optional<Objective> objective_of(const W& weight) {
    if (is_a<GpuWeight>(weight)) return Objective::gpus;
    if (is_a<UnitWeight>(weight)) return Objective::nodes;
    return std::nullopt;
}

/// @throws InvalidInput for a weight of a node that is negative or too high for sums
template <class W>
void check_weights(const Cluster& cluster, const W& weight) {
    if (objective_of(weight)) return;
    const auto most = most_node_weight(cluster);
    for (const auto node : cluster.nodes())
        if (const auto found = static_cast<std::int64_t>(weight(cluster, node)); found < 0 || found > most)
            throw InvalidInput(bad_value("node_weight", std::to_string(found), "0 to " + std::to_string(most),
                                         "node " + gpusched::quoted(cluster.name(node))));
}

/// Returns the policies with the limits of the options in their acceptance. Nothing else in options changes
/// policies.
template <class... Kinds>
[[nodiscard]] auto with_limits(const Policies<Kinds...>& policies, const Options& options) {
    if constexpr (TakesLimits<decltype(policies.acceptance)>)
        return with_acceptance(policies, policies.acceptance.with_limits(options));
    else
        return policies;
}

/// Returns the best plan of `search_first(scope, policies, executor, budget)` and of polishing, with its
/// bound.
template <class... Kinds, class First>
Result consolidate_with(const Cluster& cluster, const Policies<Kinds...>& without_limits,
                        const Options& options, const Context& context, First search_first) {
    require_lp(options.search.bound_method, context);
    check_weights(cluster, without_limits.node_weight);
    const auto policies = with_limits(without_limits, options);
    Budget budget(context, options.time_limit);
    const Threads threads(options, context);
    const auto executor = threads.executor();

    const auto scope = make_scope(cluster, options);
    auto best = search_first(scope, policies, executor, budget);
    if (options.search.polish_time) {
        const auto first_reason = best.stop_reason;
        // A search checks one budget only, so that of polishing ends no later than the time limit.
        auto time_s = *options.search.polish_time;
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
    bound = detail::bound(cluster, scope, options.search.bound_method, context.lp, budget, executor);
    const auto objective = objective_of(policies.node_weight);
    if (objective && options.price > 0 && options.search.bound_method != BoundMethod::none)
        bound.value_at_most =
            values_at_most(cluster, scope, *objective, {&options.price, 1},
                           options.search.bound_method == BoundMethod::lp ? context.lp : nullptr, budget,
                           executor)
                .front();
    if (best.stop_reason == StopReason::completed) best.stop_reason = budget.reason();  // in the bound
    return best;
}

/// Consolidates with options that were validated. Compiled in the library for AnyPolicies (named.hpp).
template <class... Kinds>
Result consolidate_validated(const Cluster& cluster, const Policies<Kinds...>& policies,
                             const Options& options, const Context& context) {
    return consolidate_with(
        cluster, policies, options, context,
        [&](const Scope& scope, const auto& limited, ExecutorRef executor, Budget& budget) {
            return search_from_scratch(cluster, scope, limited, options, executor, budget);
        });
}

}  // namespace detail

/// Consolidates with the caller's own policies. `max_others` and `price` set the limits of an acceptance that
/// takes limits. Other options never change policies; those without effect are rejected (see `validate`).
///
/// As in the paper, every round cuts the cluster into groups, solves them independently on the threads of the
/// context or of `options.threads`, and joins the results in the order of the groups. Moves of different
/// groups can conflict only through constraints that reach beyond one group. The chains of the later group
/// are then dropped for the round.
///
/// @return, throws, determinism: as `consolidate(cluster, options, context)`; a policy must be a pure
///     function
template <class... Kinds>
[[nodiscard]] Result consolidate(const Cluster& cluster, const Policies<Kinds...>& policies,
                                 const Options& options = {}, const Context& context = {}) {
    validate(options, cluster, policies);
    return detail::consolidate_validated(cluster, policies, options, context);
}

}  // namespace gpusched::consolidation
