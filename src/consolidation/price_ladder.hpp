// SPDX-License-Identifier: Apache-2.0
// The prices of a search that looks for cheap gains first, and the choice of points at even distances.
#pragma once

#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpusched::consolidation::detail {

/// Returns descending prices down to `lowest`: prices at which nodes are just worth their own moves, evenly
/// spread over the cost of these moves, and a few below.
/// @param capacity the weight that can be vacated at most; nodes beyond it are ignored
[[nodiscard]] std::vector<std::int64_t> price_ladder(const Cluster& cluster, const Scope& scope,
                                                     const AnyNodeWeight& weight, std::int64_t capacity,
                                                     std::size_t steps, std::int64_t lowest);

/// Returns the policies of one level of a price ladder: with the limits of `at` and a share of the exchange
/// steps, and with one shallow round except at the last level.
[[nodiscard]] AnyPolicies policies_at_level(const AnyPolicies& policies, const Options& at, std::size_t level,
                                            std::size_t levels);

/// Returns the positions of the first and last number and of those between them that are closest to even
/// steps, ascending. All positions if there are at most `most` numbers; the last position if `most` is 1.
/// @param numbers ascending, distinct
/// @param most at least 1
[[nodiscard]] std::vector<std::size_t> even_steps(std::span<const std::int64_t> numbers, std::size_t most);

}  // namespace gpusched::consolidation::detail
