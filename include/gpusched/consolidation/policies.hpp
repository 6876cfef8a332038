// Policies: a set of choices that makes a consolidation algorithm, and the algorithm itself.
#pragma once

#include <gpusched/consolidation/acceptance.hpp>
#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/destination_rankings.hpp>
#include <gpusched/consolidation/ejection_rules.hpp>
#include <gpusched/consolidation/node_orders.hpp>
#include <gpusched/consolidation/node_weights.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/partitioners.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/context.hpp>

#include <cstdint>
#include <limits>

namespace gpusched::consolidation {

/// One policy of each kind. `Policies{.partitioner = BySwitch{}, ...}` works with any types that satisfy the concepts.
template <Partitioner P, NodeOrder O, DestinationRanking D, EjectionRule E, Acceptance A, NodeWeight W>
struct Policies {
    P partitioner{};
    O node_order{};
    D destinations{};
    E ejection{};
    A acceptance{};
    W weight{};
    /// Try all chains of one nesting depth before deeper ones.
    bool shortest_chains_first = true;
    /// Most tasks that may move for one pod of the node, itself included; those that have moved already are free.
    std::int64_t longest_chain = std::numeric_limits<std::int64_t>::max();
    /// In each round that vacates a node of the group, gather fractions on fewer GPUs first, and fill nodes that are nearly full with tasks of others
    /// that are not in the end.
    bool fill_gaps = false;
    /// Where a group is tiny and `depth` is at least 3, look for the best plan by trying everything.
    bool exact_when_tiny = false;
};

/// Consolidates with the caller's own policies; `options.preset` and `options.objective` are not looked at.
///
/// The frame around the policies is the paper's: in every round, cut into groups, solve them independently (on as many
/// threads as the context or `options.threads` offer), join the results in the order of the groups. Moves of
/// different groups can only clash through group constraints of a network level that both reach into; the later
/// group's chains are then given up for this round.
///
/// @return, throws, determinism: as `consolidate(cluster, options, context)`; a policy must be a pure function
template <Partitioner P, NodeOrder O, DestinationRanking D, EjectionRule E, Acceptance A, NodeWeight W>
[[nodiscard]] Result consolidate(const Cluster& cluster, const Policies<P, O, D, E, A, W>& policies,
                                 const Options& options = {}, const Context& context = {});

}  // namespace gpusched::consolidation

#include <gpusched/consolidation/detail/rounds.hpp>
