// SPDX-License-Identifier: Apache-2.0
// Bounds: limits that no consolidation plan can exceed.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/executor.hpp>
#include <gpusched/core/lp.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace gpusched::consolidation {

/// Proves how many nodes must stay occupied and how much can be vacated at most.
///
/// The bound holds for every final placement that satisfies all constraints and opens no empty node. With
/// `open_price`, nodes may be opened, and the bound limits the nodes and GPUs vacated less those opened.
/// Tasks that consolidation does not move are fixed. The order of the moves and group and network constraints
/// are relaxed. Each component of nodes that movable tasks connect is bounded on its own.
///
/// - `counting`: dual feasible functions of GPUs and cores, as in packing. O(tasks + nodes log nodes).
/// - `lp`: the pattern relaxation of the packing (Gilmore and Gomory, 1961) on a grid of GPUs and cores, by
///   column generation. Its Lagrangian value, rounded safely, is never worse than `counting`.
///
/// @param options `clear` and `exempt` limit the nodes that may be vacated, `protect_core_members` and
///     `max_disrupted` the tasks that may move; `open_price` at any price; `threads` and `time_limit` as in
///     `consolidate`
/// @param context stop token, clock and progress hook, and for `lp` the solver (`Context::lp`). When the time
///     is up, `lp` falls back to `counting`
/// @throws InvalidInput for options out of range and for the method `none`; BackendError for `lp` without an
///     LP solver in the context
/// @note deterministic; `lp` returns the stricter of both methods' values
[[nodiscard]] Bound bound(const Cluster& cluster, BoundMethod method, const Options& options = {},
                          const Context& context = {});

namespace detail {

/// @throws BackendError for the method `lp` if the context has no LP solver
void require_lp(BoundMethod method, const Context& context);

/// The same for a given scope. If the budget is exhausted, `lp` falls back to `counting`, as `method` of the
/// result says.
/// @param lp for the method `lp` only
[[nodiscard]] Bound bound(const Cluster& cluster, const Scope& scope, BoundMethod method, const LpSolver* lp,
                          Budget& budget, ExecutorRef executor);

/// Returns the maximum value L(p) of any plan for each price p, in thousandths.
///
/// Every task of a vacated node that was there before the plan moves, so a node is worth at most its weight
/// less the cost of these moves. The nodes that must stay are bounded as in `bound`, with these values as
/// weights. A plan with moves of cost C vacates at most L(p) + p C, for any p: `frontier` takes the minimum
/// over its prices. The cost of opening nodes is subtracted from values and added to C likewise.
/// @param lp a solver for the stricter bound of the LP, or null. If the budget is exhausted, the counting
///     bound remains
[[nodiscard]] std::vector<std::int64_t> values_at_most(const Cluster& cluster, const Scope& scope,
                                                       Objective objective,
                                                       std::span<const std::int64_t> prices,
                                                       const LpSolver* lp, Budget& budget,
                                                       ExecutorRef executor);

}  // namespace detail

}  // namespace gpusched::consolidation
