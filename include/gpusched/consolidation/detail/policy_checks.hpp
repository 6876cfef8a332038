// SPDX-License-Identifier: Apache-2.0
// Checks of the policies of consolidation, where they come together: the compiler's first message is the cause.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/core/detail/policy_checks.hpp>

namespace gpusched::consolidation::detail {

template <class P>
concept SaysSkipping = requires { typename std::bool_constant<static_cast<bool>(P::may_skip_victims)>; };
template <class P>
concept SaysCheapestFirst = requires { typename std::bool_constant<static_cast<bool>(P::cheapest_first)>; };

/// A type that has a hook of this name. Templates have no address to ask for, and a hook may be wrong in not being const, so the
/// hook is also looked for by calling it on an object that is not const.
template <class P>
concept HasForRound =
    requires { &P::for_round; } || requires(P& policy, const Cluster& cluster) { policy.for_round(cluster); };
template <class P>
concept HasWithLimits = requires { &P::with_limits; } ||
                        requires(P& policy, const Options& options) { policy.with_limits(options); };

/// Gives a number per node, but one in floating point.
template <class P>
concept FloatPerNode = requires(const P& policy, const Cluster& cluster, NodeId node) {
    { policy(cluster, node) } -> std::floating_point;
};

/// The checks are functions of nothing but static_asserts, as those of allocation. Always true.
template <class T>
constexpr bool check_partitioner() {
    static_assert(
        Partitioner<T>,
        "Policies::partitioner is called as `partitioner(const Cluster&, std::size_t partition_size, "
        "Rng&)`, returns a Partition, and its operator() is const");
    return true;
}

template <class T>
constexpr bool check_node_order() {
    static_assert(
        !FloatPerNode<T>,
        "Policies::node_order returns whole numbers, not floating point, which would be cut off; scale them, "
        "for example to thousandths");
    static_assert(
        FloatPerNode<T> || NodeOrder<T>,
        "Policies::node_order is called as `policy(const Cluster&, NodeId)`, returns a whole number, and its "
        "operator() is const");
    static_assert(
        !HasForRound<T> || PreparesRounds<T>,
        "the policy has a hook `for_round` that would never be used: expected `NodeOrder for_round(const "
        "Cluster&) const`, which returns a policy of the same type");
    static_assert(
        !requires { &T::for_rounds; },
        "the policy has a member `for_rounds`, which nobody calls: the hook is named `for_round`");
    static_assert(
        !requires { &T::per_round; },
        "the policy has a member `per_round`, which nobody calls: the hook is named `for_round`");
    static_assert(
        !requires { &T::prepare; },
        "the policy has a member `prepare`, which nobody calls: the hook is named `for_round`");
    return true;
}

template <class T>
constexpr bool check_node_weight() {
    static_assert(!FloatPerNode<T>, "Policies::node_weight returns whole numbers, not floating point, which "
                                    "would be cut off; scale them, "
                                    "for example to thousandths");
    static_assert(FloatPerNode<T> || NodeWeight<T>, "Policies::node_weight is called as `policy(const "
                                                    "Cluster&, NodeId)`, returns a whole number, and its "
                                                    "operator() is const");
    return true;
}

template <class T>
constexpr bool check_destinations() {
    static_assert(
        DestinationRanking<T>,
        "Policies::destination_ranking has the const members `bool visit(const Cluster&, const FreeIndex&, "
        "TaskId, offer)` and `bool visit_full(...)` with the same parameters, where `offer` is called "
        "with a NodeId");
    return true;
}

template <class T>
constexpr bool check_ejection() {
    static_assert(
        EjectionRule<T>,
        "Policies::ejection_rule is called as `rule(const Cluster&, TaskId, NodeId, std::span<const Victim> "
        "movable, std::vector<Victim>& victims)`, returns bool, and its operator() is const");
    static_assert(
        !requires { &T::may_skip_victims; } || SaysSkipping<T>,
        "the policy has a hook `may_skip_victims` that would never be used: expected `static constexpr "
        "bool may_skip_victims`");
    static_assert(
        !requires { &T::cheapest_first; } || SaysCheapestFirst<T>,
        "the policy has a hook `cheapest_first` that would never be used: expected `static constexpr "
        "bool cheapest_first`");
    static_assert(
        !requires { &T::may_skip_victim; },
        "the policy has a member `may_skip_victim`, which nobody calls: the hook is named "
        "`may_skip_victims`");
    static_assert(
        !requires { &T::skip_victims; },
        "the policy has a member `skip_victims`, which nobody calls: the hook is named "
        "`may_skip_victims`");
    static_assert(
        !requires { &T::cheapest; },
        "the policy has a member `cheapest`, which nobody calls: the hook is named `cheapest_first`");
    static_assert(
        !requires { &T::wants_cheapest_first; },
        "the policy has a member `wants_cheapest_first`, which nobody calls: the hook is named "
        "`cheapest_first`");
    return true;
}

template <class T>
constexpr bool check_acceptance() {
    static_assert(
        Acceptance<T>,
        "Policies::acceptance is called as `accept(const ChainSet&)`, returns bool, and its operator() "
        "is const");
    static_assert(!HasWithLimits<T> || TakesLimits<T>,
                  "the policy has a hook `with_limits` that would never be used: expected `Acceptance "
                  "with_limits(const Options&) const`");
    static_assert(
        !requires { &T::with_limit; },
        "the policy has a member `with_limit`, which nobody calls: the hook is named `with_limits`");
    static_assert(
        !requires { &T::with_options; },
        "the policy has a member `with_options`, which nobody calls: the hook is named `with_limits`");
    return true;
}

template <class T>
constexpr bool check_picker() {
    static_assert(
        PurePicker<T>,
        "Policies::gpu_picker is called as `picker(const Cluster&, TaskId, NodeId)`, without an Rng&, "
        "returns a GpuMask or what converts to it, and its operator() is const");
    return true;
}

}  // namespace gpusched::consolidation::detail
