// SPDX-License-Identifier: Apache-2.0
// Frontier: plans along the trade-off between what is vacated and what is moved, each with what no plan can exceed.
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

/// Options of `frontier`: those of `consolidate`, of which `price` is the lowest price that it goes down to, and how many
/// points it has. `polish_time` and `goal` must be absent.
struct FrontierOptions : Options {
    /// How many plans at most, 1 .. 1000, spread evenly over what their moves cost; with 1 the one that vacates the most.
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
    /// The most that any plan's value at that price can be.
    std::int64_t value_at_most_milli = 0;
    /// The most weight that any plan vacates whose moves, and opened nodes, cost no more than this one's.
    std::int64_t weight_at_most = 0;
};

/// Plans by ascending cost of their moves, and so by ascending weight of what they vacate, less what opening nodes costs.
struct Frontier {
    std::vector<FrontierPoint> points;
    std::string bound_method;  ///< "counting" or "lp"; empty: no bounds were asked for
    StopReason stop_reason = StopReason::completed;
};

/// Finds plans along the trade-off between what is vacated and what is moved, by one search.
///
/// The search goes through descending prices, from the highest at which any node is worth its moves down to
/// `options.price`. At each price it goes on from the plan of the price before, as `consolidate` does at that price: first by
/// nodes whose moves cost the least for what they are worth, then by exchanges. Where many nodes are worth the same price,
/// plans on the way are points as well. The plan of `consolidate` at `options.price` is one too, so that none at that price is worth more
/// than the last point. With `open_price` the search is made twice, with nodes that may be opened and without: for
/// every plan that the search without `open_price` passes there is one that costs no more and gains no less, before `points` thins them.
///
/// Bounds are Lagrangian: let node n have weight w_n, and let the moves of its own tasks cost m_n. No plan of value
/// `sum w_n - p m_n` beats L(p), the most over all sets of nodes that leave enough room for the tasks, as in `bound`; so no plan
/// whose moves cost C vacates more than L(p) + p C, whatever p is. The least over the prices of the search is taken. What opening
/// nodes costs is taken off values, and added to C's side, likewise.
///
/// @param options `bound_method` for the bounds; the others as in `consolidate`
/// @return points that differ; with a time limit or a migration budget those that were reached
/// @throws InvalidInput as `consolidate`, and for a `polish_time` or a `goal`; BackendError for the method `lp` without a solver
/// @note deterministic, whatever the number of threads; as `consolidate`
[[nodiscard]] Frontier frontier(const Cluster& cluster, const FrontierOptions& options = {},
                                const Context& context = {});

}  // namespace gpusched::consolidation
