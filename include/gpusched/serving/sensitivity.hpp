// SPDX-License-Identifier: Apache-2.0
// Sensitivity of a plan: cost against load and targets, plans by budget, ranges of prices.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/plan_serving.hpp>

#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// One point of a curve and its plan.
struct CurvePoint {
    double rate = 0;           ///< requests/s of all kinds together
    LatencyTargets targets{};  ///< targets of the call, else the shortest of the request's kinds
    ServingPlan plan{};        ///< the cheapest plan; `has_plan()` is false if none exists
};

/// Plans for each rate, each set of targets, or each pair of them (rates vary slowest).
/// @param rates   requests/s of all kinds together, each > 0; empty = those of the request
/// @param targets each replaces the targets that it sets in the options; empty = the targets of the options
/// @throws InvalidInput with every problem; BackendError if the solver is missing
/// @note deterministic on one thread unless a time limit ends the search; the limit applies to each plan
[[nodiscard]] std::vector<CurvePoint> curve(const ServingRequest& request, const std::vector<double>& rates,
                                            const std::vector<LatencyTargets>& targets,
                                            const PlannerOptions& options, const milp::AnySolver& solver,
                                            const Context& context = {});

/// A plan for one budget of a sweep.
struct BudgetPlan {
    double budget = 0;  ///< $/h
    ServingPlan plan{};
};

/// Plans for each of several budgets, smallest first.
///
/// Each plan is made as by `plan_serving`, with a time limit of its own. The plan of a smaller budget is also
/// considered for larger ones, and returned there if the search finds nothing faster. So makespans never grow
/// with the budget.
/// @param request its own budget is ignored
/// @param budgets $/h, each >= 0, in any order, no duplicates
/// @param options without a deadline, because the cheapest plan does not depend on the budget
/// @throws InvalidInput with every problem; BackendError if the solver is missing
/// @note deterministic on one thread unless a time limit ends the search
[[nodiscard]] std::vector<BudgetPlan> sweep_budgets(const ServingRequest& request,
                                                    const std::vector<double>& budgets,
                                                    const PlannerOptions& options = {},
                                                    const milp::AnySolver& solver = "auto",
                                                    const Context& context = {});

/// The range of one price within which a plan stays the cheapest, all other prices unchanged.
struct PriceRange {
    std::string gpu{};                                      ///< name of the GPU type
    bool spot = false;                                      ///< its spot price; false = its regular price
    double price = 0;                                       ///< $/h of one GPU in the request
    double low = 0;                                         ///< $/h; below it another rental is cheaper
    double high = std::numeric_limits<double>::infinity();  ///< $/h; above it another rental is cheaper
    bool proven = true;  ///< both ends were found; false if the solver was stopped, then low = high = price
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

/// Finds, for every regular and spot price, the range within which a plan for rates stays the cheapest.
///
/// The least cost is a concave function of one price, and the cost of the plan is a line that touches it at
/// today's price. So the ends are exact: from a trial price, the search goes to the price at which the
/// cheaper plan and this plan cost the same, and tries again there.
///
/// Compared are plans with the same `capacity` and `separate`; a plan with more load per replica can be
/// cheaper within the range. Considered are the deployments that `max_deployments` keeps at today's prices,
/// whatever the budget. With targets, the cheaper rental beyond an end can miss them in the simulation.
/// @param plan plan of this request with these options, goal `cheapest`
/// @throws InvalidInput with every problem, and without a plan for rates; BackendError if the solver is
///     missing Complexity: a few mixed-integer programs per price.
[[nodiscard]] std::vector<PriceRange> price_ranges(const ServingRequest& request, const ServingPlan& plan,
                                                   const PlannerOptions& options,
                                                   const milp::AnySolver& solver,
                                                   const Context& context = {});

}  // namespace gpusched::serving
