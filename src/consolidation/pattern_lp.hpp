// SPDX-License-Identifier: Apache-2.0
// PatternLp: the pattern relaxation of a packing, by column generation.
#pragma once

#include "consolidation/bin_packing.hpp"

#include <gpusched/core/budget.hpp>
#include <gpusched/core/lp.hpp>

namespace gpusched::consolidation::detail {

/// The least that must stay occupied, by the linear relaxation over *patterns*: sets of items that fill one bin (P.
/// Gilmore, R. Gomory, A linear programming approach to the cutting stock problem, 1961). GPUs and cores are rounded
/// down to a grid, which only weakens the bound; memory is relaxed.
///
/// Each iteration solves the LP over the patterns found so far, and prices new ones by a knapsack over the whole grid
/// at once. For prices p of the items, p . counts + sum of bins * min(0, cost - best pattern) bounds the optimum from
/// below whatever p is; the best such value, rounded with care for floating point, is returned, so that the solver
/// need not be trusted. Stops when rounding makes the gap vanish, or when the budget is exhausted.
///
/// @param stakes by bin: what is lost where one such node stays; 0 for those that stay anyway
[[nodiscard]] std::int64_t least_stay(const BinPacking& packing, const Stakes& stakes,
                                      const Inventory& inventory, const LpSolver& lp, Budget& budget);

/// The same for nodes and for GPUs.
/// @param known a bound of the same packing that the result must not fall below
[[nodiscard]] MustStay pattern_bound(const BinPacking& packing, MustStay known, const Inventory& inventory,
                                     const LpSolver& lp, Budget& budget);

}  // namespace gpusched::consolidation::detail
