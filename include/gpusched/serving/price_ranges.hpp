// SPDX-License-Identifier: Apache-2.0
// How far each price may move until another rental is cheaper.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/plan_serving.hpp>

#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// Between which prices of one GPU type, the usual or the spot one, a plan stays the cheapest of those that fill replicas as far, all
/// other prices as they are.
struct PriceRange {
    std::string gpu{};
    bool spot = false;                                      ///< the spot price; otherwise the usual one
    double price = 0;                                       ///< $/h of one GPU, today's
    double low = 0;                                         ///< $/h: below it another rental is cheaper
    double high = std::numeric_limits<double>::infinity();  ///< $/h: above it another rental is cheaper
    /// Both ends were found; where a limit of the solver strikes first, the range is today's price alone.
    bool proven = true;
    bool operator==(const PriceRange&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<PriceRange>, F&& field) {
    field("gpu", &PriceRange::gpu);
    field("spot", &PriceRange::spot);
    field("price", &PriceRange::price);
    field("low", &PriceRange::low);
    field("high", &PriceRange::high, NullIfUnknown{});
    field("proven", &PriceRange::proven);
}

/// For every GPU type the range of its usual price, and of its spot price where there is one, within which a plan for rates
/// stays the cheapest.
///
/// The least cost is a concave function of one price, the plan's own cost a line that touches it today: the ends are found
/// exactly, by following the line of the plan that is cheaper at a trial price to where both cost the same, and trying there. The
/// plans compared fill their replicas to the same part of what they serve within the targets (`capacity`), and keep kinds of requests
/// apart where this one does (`separate`): one that fills more may be cheaper within the range. Of the deployments, those count that
/// `max_deployments` keeps at today's prices, whatever the budget; with targets, a rental that the program finds cheaper
/// beyond an end may miss them in the simulation of the whole plan.
/// @param plan of this request and these options, with goal `cheapest`
/// @throws InvalidInput with everything that is wrong, and for a plan that serves nothing or is not about rates; BackendError
///     where the solver is missing
/// Complexity: a few mixed-integer programs per price.
[[nodiscard]] std::vector<PriceRange> price_ranges(const ServingRequest& request, const ServingPlan& plan,
                                                   const PlannerOptions& options,
                                                   const milp::AnySolver& solver,
                                                   const Context& context = {});

}  // namespace gpusched::serving
