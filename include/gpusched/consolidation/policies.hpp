// SPDX-License-Identifier: Apache-2.0
// Policies: a set of choices that makes a consolidation algorithm, and the algorithm itself.
#pragma once

#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/consolidation/acceptance.hpp>
#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/destination_rankings.hpp>
#include <gpusched/consolidation/detail/policy_checks.hpp>
#include <gpusched/consolidation/ejection_rules.hpp>
#include <gpusched/consolidation/node_orders.hpp>
#include <gpusched/consolidation/node_weights.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/partitioners.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/context.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gpusched::consolidation {

/// What the frame around the policies does, and how far it goes.
struct Switches {
    /// `Options::depth` counts up to here, 1 .. 16.
    int deepest = most_depth;
    /// `Options::rounds` counts up to here, >= 1.
    int most_rounds = std::numeric_limits<int>::max();
    /// Where there are several rounds, the first nests at most twice: a search that runs out of time has the cheap gains.
    bool shallow_round_first = false;
    /// Try all chains of one nesting depth before deeper ones.
    bool shortest_chains_first = true;
    /// A request that asks for no less than one that failed in the same round fails without a search. A heuristic:
    /// moves made since then may have made room.
    bool remember_failures = true;
    /// Each round that vacates a node of the group first gathers fractions on fewer GPUs: up to 3 % more GPUs vacated, for
    /// up to a tenth more moves per node.
    bool gather_fractions = false;
    /// Each round that vacates a node of the group last fills nodes that are nearly full with tasks of others that are
    /// not, where one more move does it. Not where `Options::clear` names the nodes: all moves serve them there.
    bool fill_gaps = false;
    /// Search several times and go on from the best plan: as the policies say; with the nodes first whose own moves cost the least
    /// for what they are worth; in one round of moves that are nested at most twice, as `fast`; and with the policies of the paper, where
    /// partitioner, destinations and ejection rule are those of `best`: a caller's own may be meant as limits.
    bool several_starts = false;
    /// Steps for each node that may be vacated (one in five of those beyond a thousand), >= 0, of exchanging vacated nodes for
    /// others once the rounds are over; 0 = none. Not where there is a migration budget.
    std::int64_t exchange_steps = 0;
    /// Where a group is tiny and the depth is at least 3, look for the best plan by trying everything.
    bool exact_when_tiny = false;
    bool operator==(const Switches&) const = default;
};

/// One policy of each kind: any types that satisfy the concepts Partitioner, NodeOrder, DestinationRanking, EjectionRule,
/// Acceptance, NodeWeight and PurePicker (concepts.hpp).
template <class P, class O, class D, class E, class A, class W, class G = allocation::TightestGpu>
struct Policies {
    static_assert(detail::check_partitioner<P>());
    static_assert(detail::check_node_order<O>());
    static_assert(detail::check_destinations<D>());
    static_assert(detail::check_ejection<E>());
    static_assert(detail::check_acceptance<A>());
    static_assert(detail::check_node_weight<W>());
    static_assert(detail::check_picker<G>());

    P partitioner{};
    O node_order{};
    D destination_ranking{};
    E ejection_rule{};
    A acceptance{};
    W node_weight{};
    G gpu_picker{};
    Switches switches{};

    /// The same policies as other types that hold them: `AnyPolicies policies = presets::best();` (any.hpp).
    template <class P2, class O2, class D2, class E2, class A2, class W2, class G2>
        requires(!std::same_as<Policies, Policies<P2, O2, D2, E2, A2, W2, G2>> &&
                 std::convertible_to<P, P2> && std::convertible_to<O, O2> && std::convertible_to<D, D2> &&
                 std::convertible_to<E, E2> && std::convertible_to<A, A2> && std::convertible_to<W, W2> &&
                 std::convertible_to<G, G2>)
    operator Policies<P2, O2, D2, E2, A2, W2, G2>() const {  // NOLINT(google-explicit-constructor)
        return {partitioner, node_order,  destination_ranking, ejection_rule,
                acceptance,  node_weight, gpu_picker,          switches};
    }
};

namespace detail {

/// Policies with the one at a position, counted from the partitioner, replaced; the others, and the switches, stay.
template <std::size_t position, class New, class... Kinds>
[[nodiscard]] auto with_kind(const Policies<Kinds...>& p, New policy) {
    const auto kinds = std::tie(p.partitioner, p.node_order, p.destination_ranking, p.ejection_rule,
                                p.acceptance, p.node_weight, p.gpu_picker);
    const auto pick = [&]<std::size_t at>() -> decltype(auto) {
        if constexpr (at == position)
            return std::as_const(policy);
        else
            return std::get<at>(kinds);
    };
    return [&]<std::size_t... at>(std::index_sequence<at...>) {
        return Policies<std::remove_cvref_t<decltype(pick.template operator()<at>())>...>{
            pick.template operator()<at>()..., p.switches};
    }(std::make_index_sequence<sizeof...(Kinds)>{});
}

}  // namespace detail

// A set of policies with one of them replaced, also by one of another type:
// `with_node_order(presets::best(), MyOrder{})`. The others, and the switches, stay.

template <class New, class... Kinds>
[[nodiscard]] auto with_partitioner(const Policies<Kinds...>& policies, New policy) {
    return detail::with_kind<0>(policies, std::move(policy));
}
template <class New, class... Kinds>
[[nodiscard]] auto with_node_order(const Policies<Kinds...>& policies, New policy) {
    return detail::with_kind<1>(policies, std::move(policy));
}
template <class New, class... Kinds>
[[nodiscard]] auto with_destination_ranking(const Policies<Kinds...>& policies, New policy) {
    return detail::with_kind<2>(policies, std::move(policy));
}
template <class New, class... Kinds>
[[nodiscard]] auto with_ejection_rule(const Policies<Kinds...>& policies, New policy) {
    return detail::with_kind<3>(policies, std::move(policy));
}
template <class New, class... Kinds>
[[nodiscard]] auto with_acceptance(const Policies<Kinds...>& policies, New policy) {
    return detail::with_kind<4>(policies, std::move(policy));
}
template <class New, class... Kinds>
[[nodiscard]] auto with_node_weight(const Policies<Kinds...>& policies, New policy) {
    return detail::with_kind<5>(policies, std::move(policy));
}
template <class New, class... Kinds>
[[nodiscard]] auto with_gpu_picker(const Policies<Kinds...>& policies, New policy) {
    return detail::with_kind<6>(policies, std::move(policy));
}

/// @throws InvalidInput as `validate(options, cluster)`, and with every option that has no effect beside these policies:
///     `preset` and `objective`, whose place they take, and `max_others` and `price` unless the acceptance has
///     the hook `with_limits`, as PriceLimit has
template <class... Kinds>
void validate(const Options& options, const Cluster& cluster, const Policies<Kinds...>& policies) {
    detail::validate_beside_policies(options, cluster, detail::takes_limits(policies.acceptance));
}

/// Consolidates with the caller's own policies. `max_others` and `price` set the limits of an acceptance
/// that takes limits, as PriceLimit does; other options never change policies, and those that then have no effect are
/// refused (see `validate`).
///
/// The frame around the policies is the paper's: in every round, cut into groups, solve them independently (on as many
/// threads as the context or `options.threads` offer), join the results in the order of the groups. Moves of
/// different groups can only clash through group constraints of a network level that both reach into; the later
/// group's chains are then given up for this round.
///
/// @return, throws, determinism: as `consolidate(cluster, options, context)`; a policy must be a pure function
template <class... Kinds>
[[nodiscard]] Result consolidate(const Cluster& cluster, const Policies<Kinds...>& policies,
                                 const Options& options = {}, const Context& context = {});

}  // namespace gpusched::consolidation

#include <gpusched/consolidation/detail/search.hpp>
