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

#include <cstdint>
#include <limits>

namespace GPUSCHED_NAMESPACE::consolidation {

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
    D destinations{};
    E ejection{};
    A acceptance{};
    W weight{};
    G picker{};
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
    /// not, where one more move does it.
    bool fill_gaps = false;
    /// Where a group is tiny and the depth is at least 3, look for the best plan by trying everything.
    bool exact_when_tiny = false;
};

/// Consolidates with the caller's own policies; `options.preset`, `objective`, `max_others` and `max_price_ratio` are
/// not looked at.
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

}  // namespace GPUSCHED_NAMESPACE::consolidation

#include <gpusched/consolidation/detail/rounds.hpp>
