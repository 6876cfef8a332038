// SPDX-License-Identifier: Apache-2.0
// Bounds: limits that no consolidation plan can exceed.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/core/budget.hpp>
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
/// The bound holds for every final placement that satisfies all constraints and opens no node that is empty now, or, with
/// `open_price`, for the nodes and GPUs that it vacates less those that it opens,
/// with all tasks fixed that consolidation does not move (locked, daemon, standby, bound to local cores). The
/// order of the moves, groups and network constraints are relaxed. Nodes and movable tasks split into
/// *components*, linked by tasks that may run on several kinds of node; each is bounded on its own.
///
/// - `counting`: dual feasible functions. A task weighs lambda * f_a(GPUs) + (1 - lambda) * cores, where
///   f_a(x) = floor(x / a) for a in 1, 2, 4, 8, 16 or f(x) = x; what the tasks of a component weigh beyond what
///   its fixed nodes can take must lie on nodes that stay occupied. O(tasks + nodes log nodes).
/// - `lp`: the pattern relaxation of the packing (Gilmore and Gomory, 1961) on a grid of GPUs and cores, by
///   column generation; its Lagrangian value, rounded safely, is never worse than `counting`.
///
/// @param options `clear` and `exempt` narrow what may be vacated, `open_price` lets empty nodes be opened (whatever it is), `protect_core_members` and `max_disrupted` what may
///     move; `threads` and `time_limit` count as in `consolidate`
/// @param context stop token, clock and progress hook, and for `lp` the solver (`Context::lp`); where the time is up, `lp`
///     falls back to `counting`
/// @throws InvalidInput for options out of range and for the method `none`; BackendError for `lp` without an
///     LP solver in the context
/// @note deterministic; `lp` returns the stricter of both methods' values
[[nodiscard]] Bound bound(const Cluster& cluster, BoundMethod method, const Options& options = {},
                          const Context& context = {});

namespace detail {
/// @throws BackendError for the method `lp` where the context has no LP solver
void require_lp(BoundMethod method, const Context& context);

/// The same for a scope at hand; `lp` falls back to `counting` where the budget is exhausted, and says so in `method`.
/// @param lp for the method `lp` only
[[nodiscard]] Bound bound(const Cluster& cluster, const Scope& scope, BoundMethod method, const LpSolver* lp,
                          Budget& budget, ExecutorRef executor);
}  // namespace detail

}  // namespace gpusched::consolidation

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
