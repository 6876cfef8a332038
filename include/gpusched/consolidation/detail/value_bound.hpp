// SPDX-License-Identifier: Apache-2.0
// Value bounds: what no plan can be worth at a price.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/executor.hpp>
#include <gpusched/core/lp.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace gpusched::consolidation::detail {

/// By price: the most that any plan's value can be, in thousandths; see `frontier`. Every task of a vacated node that is at home
/// there moves, so that a node is worth at most its weight less the cost of these moves; what must stay for lack of room
/// is bounded as in `bound`, with these values in place of the weights.
/// @param lp a solver for the stricter bound of the LP, or none; where the budget is exhausted, the counting bound is left
[[nodiscard]] std::vector<std::int64_t> values_at_most(const Cluster& cluster, const Scope& scope,
                                                       Objective objective,
                                                       std::span<const std::int64_t> prices,
                                                       const LpSolver* lp, Budget& budget,
                                                       ExecutorRef executor);

}  // namespace gpusched::consolidation::detail
