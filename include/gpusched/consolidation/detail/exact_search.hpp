// SPDX-License-Identifier: Apache-2.0
// Exact search: the best plan of a tiny group, by trying all sets of nodes to vacate.
#pragma once

#include <gpusched/consolidation/detail/joiner.hpp>
#include <gpusched/core/budget.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace gpusched::consolidation::detail {

/// Looks for the plan of the highest value, then of the lowest cost, in a group of at most 12 nodes that may be vacated and 20
/// movable tasks. Nodes that may be opened count as destinations, at what they cost.
///
/// Sets of nodes are tried by descending value, as far as they can be better than what is known. For each, the tasks on it and
/// up to three others are taken off, and put back in all ways that fit; the first way that can be ordered into waves
/// without dropping anything is taken. Gives up (and returns the best so far) for larger groups, for snapshots of more than 1,000 nodes, or after 300,000 trials. Not asked
/// where there is a migration budget or a group of more than 64 nodes.
///
/// @param cluster the snapshot
/// @param known_gain, known_cost of the plan that is to be beaten
/// @param weights by position in `group`: what vacating that node is worth
/// @return chains whose steps, one after the other, are possible; empty when nothing better was found
[[nodiscard]] std::vector<Vacated> exact_search(const Cluster& cluster, const Scope& scope,
                                                std::span<const NodeId> group,
                                                std::span<const std::int64_t> weights,
                                                std::int64_t known_gain, std::int64_t known_cost,
                                                const Options& options, Budget& budget);

}  // namespace gpusched::consolidation::detail
