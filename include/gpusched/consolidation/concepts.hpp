// SPDX-License-Identifier: Apache-2.0
// The concepts of consolidation's policies. A policy is a small value; time and randomness are arguments.
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

/// Disjoint groups of nodes that are solved independently.
using Partition = std::vector<std::vector<NodeId>>;

/// Cuts the cluster into disjoint groups. Called once per round.
template <class P>
concept Partitioner =
    requires(const P& policy, const Cluster& cluster, std::size_t partition_size, Rng& rng) {
        { policy(cluster, partition_size, rng) } -> std::same_as<Partition>;
    };

/// Decides which node of a group is tried first: ascending by the returned key, a whole number, then by id.
///
/// Optional hook: `for_round(cluster)` returns the same order prepared for one round. It is called at the
/// start of every round, on the calling thread, with the cluster as all groups of the round find it.
template <class P>
concept NodeOrder = requires(const P& policy, const Cluster& cluster, NodeId node) {
    { policy(cluster, node) } -> gpusched::detail::WholeNumber;
};

/// Decides the order in which the destinations of a group are offered. `visit` calls `offer(NodeId)` until
/// that returns true, and returns whether it did. It may leave out nodes that cannot hold the task now.
/// `visit_full` does the same for nodes that might hold the task after some of their tasks have left.
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

/// A task that may leave a node for another task.
struct Victim {
    TaskId task = none<TaskId>;
    bool moved = false;  ///< it has already left its first node, so moving it again costs nothing
};

/// Decides which tasks must leave `node` so that `task` fits: fills `victims` from `movable`, the tasks that
/// may leave, in the order in which they are re-placed. Returns false if that does not help.
///
/// Optional static constants, false if absent. `may_skip_victims`: a victim without a place stays, and `task`
/// is tried after each victim that left. `cheapest_first`: all destinations are compared, and those with the
/// fewest moves are tried first. A rule that knows them only at run time has `bool skips_victims() const` and
/// `bool takes_cheapest_first() const` instead.
template <class P>
concept EjectionRule = requires(const P& policy, const Cluster& cluster, TaskId task, NodeId node,
                                std::span<const Victim> movable, std::vector<Victim>& victims) {
    { policy(cluster, task, node, movable, victims) } -> std::same_as<bool>;
};

/// The moves that vacate one node. Tasks that have already moved move again at no cost.
struct ChainSet {
    NodeId node = none<NodeId>;
    std::int64_t gain = 0;   ///< weight of the node
    std::int64_t tasks = 0;  ///< tasks on the node that were there before the plan; they move in any case
    std::int64_t moves = 0;  ///< tasks that move: these and others
    std::int64_t cost = 0;   ///< sum of the moved tasks' `move_cost`
    std::int64_t opening =
        0;  ///< cost of the empty nodes that it opens, less those it leaves, in thousandths of `gain`
    std::int64_t opened = 0;  ///< empty nodes that it opens, less those it leaves

    /// Adds the amounts; `node` stays.
    ChainSet& operator+=(const ChainSet& other) noexcept {
        gain += other.gain;
        tasks += other.tasks;
        moves += other.moves;
        cost += other.cost;
        opening += other.opening;
        opened += other.opened;
        return *this;
    }
};

/// Decides whether the chains found for a node are worth it. Called whenever a task of the node has found a
/// place; after a refusal the node is given up. With `Switches::shortest_chains_first` it is also called
/// before deeper chains are tried, with the least that they can cost: one more move per level of nesting,
/// each at the lowest `move_cost` of any movable task. It must be monotone: more moves never turn a refusal
/// into an acceptance.
///
/// Optional hook: `with_limits(options)` returns the same acceptance with the limits `max_others` and `price`
/// of the options. Without it these options are rejected.
template <class P>
concept Acceptance = requires(const P& policy, const ChainSet& chains) {
    { policy(chains) } -> std::same_as<bool>;
};

/// The weight of a vacated node: a whole number from 0 to `most_node_weight(cluster)`. Checked before a
/// search.
template <class P>
concept NodeWeight = requires(const P& policy, const Cluster& cluster, NodeId node) {
    { policy(cluster, node) } -> gpusched::detail::WholeNumber;
};

/// A GPU picker without random numbers: consolidation calls it in any order.
template <class P>
concept PurePicker =
    allocation::GpuPicker<P> && requires(const P& policy, const Cluster& cluster, TaskId task, NodeId node) {
        policy(cluster, task, node);
    };

namespace detail {

template <class P>
concept PreparesRounds = requires(const P& policy, const Cluster& cluster) {
    { policy.for_round(cluster) } -> std::same_as<P>;
};
template <class P>
concept TakesLimits = requires(const P& policy, const Options& options) {
    { policy.with_limits(options) } -> std::same_as<P>;
};

/// The flags of a rule or an acceptance, which may be known only at run time.
template <class P>
[[nodiscard]] constexpr bool skips_victims(const P& rule) {
    if constexpr (requires { rule.skips_victims(); })
        return rule.skips_victims();
    else if constexpr (requires { P::may_skip_victims; })
        return P::may_skip_victims;
    else
        return false;
}
template <class P>
[[nodiscard]] constexpr bool takes_cheapest_first(const P& rule) {
    if constexpr (requires { rule.takes_cheapest_first(); })
        return rule.takes_cheapest_first();
    else if constexpr (requires { P::cheapest_first; })
        return P::cheapest_first;
    else
        return false;
}
template <class P>
[[nodiscard]] constexpr bool takes_limits(const P& policy) {
    if constexpr (requires { policy.takes_limits(); })
        return policy.takes_limits();
    else
        return TakesLimits<P>;
}

/// A key or weight in floating point, the likeliest mistake.
template <class P>
concept FloatPerNode = requires(const P& policy, const Cluster& cluster, NodeId node) {
    { policy(cluster, node) } -> std::floating_point;
};

/// A hook of this name, right or wrong. A template has no address, so the hook is also looked for by a call.
template <class P>
concept HasForRound =
    requires { &P::for_round; } || requires(P& policy, const Cluster& cluster) { policy.for_round(cluster); };
template <class P>
concept HasWithLimits = requires { &P::with_limits; } ||
                        requires(P& policy, const Options& options) { policy.with_limits(options); };

// The kinds of policies with their checks: the compiler's first message names the mistake. Each check returns
// true.

struct PartitionerKind {
    template <class P>
    static constexpr bool check() {
        static_assert(
            Partitioner<P>,
            "Policies::partitioner is called as `partitioner(const Cluster&, std::size_t partition_size, "
            "Rng&)`, returns a Partition, and its operator() is const");
        return true;
    }
};

struct NodeOrderKind {
    template <class P>
    static constexpr bool check() {
        static_assert(!FloatPerNode<P>,
                      "Policies::node_order returns whole numbers, not floating point; scale them, for "
                      "example to thousandths");
        static_assert(FloatPerNode<P> || NodeOrder<P>,
                      "Policies::node_order is called as `policy(const Cluster&, NodeId)`, returns a whole "
                      "number, and its operator() is const");
        static_assert(!HasForRound<P> || PreparesRounds<P>,
                      "the hook `for_round` of a node order is `NodeOrder for_round(const Cluster&) const`, "
                      "which returns a policy of the same type");
        return true;
    }
};

struct NodeWeightKind {
    template <class P>
    static constexpr bool check() {
        static_assert(!FloatPerNode<P>,
                      "Policies::node_weight returns whole numbers, not floating point; scale them, for "
                      "example to thousandths");
        static_assert(FloatPerNode<P> || NodeWeight<P>,
                      "Policies::node_weight is called as `policy(const Cluster&, NodeId)`, returns a whole "
                      "number, and its operator() is const");
        return true;
    }
};

struct DestinationRankingKind {
    template <class P>
    static constexpr bool check() {
        static_assert(
            DestinationRanking<P>,
            "Policies::destination_ranking has the const members `bool visit(const Cluster&, const "
            "FreeIndex&, TaskId, offer)` and `bool visit_full(...)` with the same parameters; they call "
            "`offer` with a NodeId");
        return true;
    }
};

struct EjectionRuleKind {
    template <class P>
    static constexpr bool check() {
        static_assert(EjectionRule<P>,
                      "Policies::ejection_rule is called as `rule(const Cluster&, TaskId, NodeId, "
                      "std::span<const Victim> movable, std::vector<Victim>& victims)`, returns bool, and "
                      "its operator() is const");
        return true;
    }
};

struct AcceptanceKind {
    template <class P>
    static constexpr bool check() {
        static_assert(
            Acceptance<P>,
            "Policies::acceptance is called as `accept(const ChainSet&)`, returns bool, and its operator() "
            "is const");
        static_assert(
            !HasWithLimits<P> || TakesLimits<P>,
            "the hook `with_limits` of an acceptance is `Acceptance with_limits(const Options&) const`, "
            "which returns a policy of the same type");
        return true;
    }
};

struct PurePickerKind {
    template <class P>
    static constexpr bool check() {
        static_assert(
            PurePicker<P>,
            "Policies::gpu_picker is called as `picker(const Cluster&, TaskId, NodeId)`, without an Rng&, "
            "returns a GpuMask or a type that converts to it, and its operator() is const");
        return true;
    }
};

}  // namespace detail

}  // namespace gpusched::consolidation
