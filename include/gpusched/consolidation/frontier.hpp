// SPDX-License-Identifier: Apache-2.0
// frontier(): plans along the trade-off between vacated nodes and the cost of moves, each with a bound.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::consolidation {

/// Options of `frontier`: those of `consolidate` and the number of points. `price` is the lowest price of the
/// search. `polish_time` and `goal` must be absent.
struct FrontierOptions : Options {
    /// Maximum number of plans, 1 .. 1000, spread evenly over the cost of their moves; 1 = the plan that
    /// vacates most.
    std::size_t points = 20;
};
template <class F>
constexpr void visit_fields(std::type_identity<FrontierOptions>, F&& field) {
    visit_fields(std::type_identity<Options>{}, field);
    field("points", &FrontierOptions::points, within<std::size_t>(1, 1000));
}

/// One plan of a frontier.
struct FrontierPoint {
    /// The plan; its statistics name the price at which it was found, and its value at that price.
    Result result;
    /// Proven maximum of any plan's value at that price, in thousandths.
    std::int64_t value_at_most_milli = 0;
    /// Proven maximum of the weight that any plan vacates at the same cost of moves and opened nodes.
    std::int64_t weight_at_most = 0;
};

/// Plans by ascending cost of their moves, and so by ascending weight of vacated nodes less the cost of
/// opening nodes.
struct Frontier {
    std::vector<FrontierPoint> points;
    std::string bound_method;  ///< "counting" or "lp"; empty without bounds
    StopReason stop_reason = StopReason::completed;
};

/// Finds plans along the trade-off between vacated nodes and the cost of moves, by one search.
///
/// The search passes through descending prices, from the highest at which any node is worth its moves to
/// `options.price`. At each price it continues from the plan before, as `consolidate` at that price. If many
/// nodes have the same price, plans in between are points as well. The plan of `consolidate` at `options.price`
/// is included, so no plan at that price is worth more than the last point. With `open_price` the search runs
/// with and without it.
///
/// Each point has a Lagrangian bound: the maximum weight that any plan vacates at the same cost.
///
/// @return points that differ; with a time limit or a migration budget those that were reached
/// @throws InvalidInput as `consolidate`, and for a `polish_time` or a `goal`; BackendError for `lp` without a
///     solver
/// @note deterministic for any number of threads, as `consolidate`
[[nodiscard]] Frontier frontier(const Cluster& cluster, const FrontierOptions& options = {},
                                const Context& context = {});

}  // namespace gpusched::consolidation
