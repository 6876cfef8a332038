// SPDX-License-Identifier: Apache-2.0
// The concepts that policies of consolidation satisfy, and checks with messages for each.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/consolidation/free_index.hpp>
#include <gpusched/core/detail/policy_checks.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/model/cluster.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpusched::consolidation {

struct Options;

/// Disjoint groups of nodes, solved independently of each other.
using Partition = std::vector<std::vector<NodeId>>;

/// Cuts the cluster into disjoint groups; called once per round.
template <class P>
concept Partitioner =
    requires(const P& policy, const Cluster& cluster, std::size_t partition_size, Rng& rng) {
        { policy(cluster, partition_size, rng) } -> std::same_as<Partition>;
    };

/// Which node of a group is tried first: ascending by the returned key, a whole number, then by id. Optional hook:
/// `for_round(cluster)`, the same order made ready for one round. It is called once at the start of every round, on the thread
/// of the caller, with the cluster as all groups of the round find it; what it returns is then asked about the nodes.
template <class P>
concept NodeOrder = requires(const P& policy, const Cluster& cluster, NodeId node) {
    { policy(cluster, node) } -> gpusched::detail::WholeNumber;
};

namespace detail {
template <class P>
concept PreparesRounds = requires(const P& policy, const Cluster& cluster) {
    { policy.for_round(cluster) } -> std::same_as<P>;
};
}  // namespace detail

/// In which order the destinations of a group are offered. `visit` calls `offer(NodeId)` until that returns true,
/// and returns whether it did; it may leave out nodes that cannot hold the task now. `visit_full` does the same for
/// nodes that might hold it once some of their tasks have left.
template <class P>
concept DestinationRanking =
    requires(const P& policy, const Cluster& cluster, const FreeIndex& index, TaskId task) {
        {
            policy.visit(cluster, index, task, [](NodeId) { return true; })
        } -> std::same_as<bool>;
        {
            policy.visit_full(cluster, index, task, [](NodeId) { return true; })
        } -> std::same_as<bool>;
    };

/// A task that may leave a node to make room.
struct Victim {
    TaskId task = none<TaskId>;
    bool moved = false;  ///< it has left its home already: moving it on costs no further move
};

/// Which tasks must leave `node` so that `task` fits: fills `victims` from `movable` (those that may leave), in the
/// order in which they are to be re-placed; false when nothing helps. Optional static constants, false if absent:
/// `may_skip_victims`: victims that find no place stay, and the task is tried after each that does;
/// `cheapest_first`: all destinations are compared, and those that cost the fewest moves are tried first. A rule that learns
/// them only at run time has `bool skips_victims() const` and `bool takes_cheapest_first() const` instead.
template <class P>
concept EjectionRule = requires(const P& policy, const Cluster& cluster, TaskId task, NodeId node,
                                std::span<const Victim> movable, std::vector<Victim>& victims) {
    { policy(cluster, task, node, movable, victims) } -> std::same_as<bool>;
};

/// See EjectionRule.
template <class P>
inline constexpr bool may_skip_victims = [] {
    if constexpr (requires { P::may_skip_victims; }) return static_cast<bool>(P::may_skip_victims);
    return false;
}();
template <class P>
inline constexpr bool wants_cheapest_first = [] {
    if constexpr (requires { P::cheapest_first; }) return static_cast<bool>(P::cheapest_first);
    return false;
}();

namespace detail {
/// The same of a rule at hand, which may say it at run time.
template <class P>
[[nodiscard]] constexpr bool skips_victims(const P& rule) {
    if constexpr (requires { rule.skips_victims(); })
        return rule.skips_victims();
    else
        return may_skip_victims<P>;
}
template <class P>
[[nodiscard]] constexpr bool takes_cheapest_first(const P& rule) {
    if constexpr (requires { rule.takes_cheapest_first(); })
        return rule.takes_cheapest_first();
    else
        return wants_cheapest_first<P>;
}
}  // namespace detail

/// What vacating one node would take. Tasks that have moved already move on for nothing.
struct ChainSet {
    NodeId node = none<NodeId>;
    std::int64_t gain = 0;   ///< weight of the node
    std::int64_t tasks = 0;  ///< on the node and at home there; they move in any case
    std::int64_t moves = 0;  ///< of these tasks and of others
    std::int64_t cost = 0;   ///< sum of the moved tasks' `move_cost`
    /// What it costs to open the empty nodes that it moves tasks onto, less that of those that it leaves again; in thousandths of `gain`.
    std::int64_t opening = 0;
    std::int64_t opened = 0;  ///< how many empty nodes it moves tasks onto, less those that it leaves again
};

/// Whether the chains found for a node are worth it. Asked whenever a task of the node has found a place: once it says no, the
/// node is given up. With `Switches::shortest_chains_first` it is also asked before chains are tried, as if every level of
/// nesting moved the task that is the cheapest to move; where it says no, the task finds no place. It must be monotone: adding moves never turns a refusal
/// into an acceptance. Optional hook: `with_limits(options)`, the same acceptance with the limits that `max_others`
/// and `price` of the options set; without it these options are refused.
template <class P>
concept Acceptance = requires(const P& policy, const ChainSet& chains) {
    { policy(chains) } -> std::same_as<bool>;
};

namespace detail {
template <class P>
concept TakesLimits = requires(const P& policy, const Options& options) {
    { policy.with_limits(options) } -> std::same_as<P>;
};
/// The same of an acceptance at hand, which may say it at run time.
template <class P>
[[nodiscard]] constexpr bool takes_limits(const P& policy) {
    if constexpr (requires { policy.takes_limits(); })
        return policy.takes_limits();
    else
        return TakesLimits<P>;
}
}  // namespace detail

/// What a vacated node is worth, a whole number from 0 to `most_node_weight(cluster)`; others are refused when a search begins.
template <class P>
concept NodeWeight = requires(const P& policy, const Cluster& cluster, NodeId node) {
    { policy(cluster, node) } -> gpusched::detail::WholeNumber;
};

/// A GPU picker that takes no random numbers: consolidation asks it in any order.
template <class P>
concept PurePicker =
    allocation::GpuPicker<P> && requires(const P& policy, const Cluster& cluster, TaskId task, NodeId node) {
        policy(cluster, task, node);
    };

}  // namespace gpusched::consolidation

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
