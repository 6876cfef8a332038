// SPDX-License-Identifier: Apache-2.0
#include "serving/rental_instance.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/price_ranges.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace gpusched::serving {

GPUSCHED_EXPORT std::vector<PriceRange> price_ranges(const ServingRequest& request, const ServingPlan& plan,
                                                     const PlannerOptions& options,
                                                     const milp::AnySolver& solver, const Context& context) {
    validate(request);
    validate(options);
    if (!request.has_rates() || options.goal != Goal::cheapest || !plan.has_plan())
        throw InvalidInput("plan: expected a plan of a request with rates, with goal 'cheapest'");
    // At another price the budget pays for other deployments; those of the plan are among them in any case.
    auto rich = request;
    rich.budget = std::numeric_limits<double>::infinity();
    const detail::RentalInstance instance(rich, options, solver, context, plan.replicas);
    auto problem = instance.problem(plan.capacity, plan.separate);
    const double cost = plan.cost;
    std::vector<PriceRange> ranges;
    const auto find = [&](std::size_t g, bool spot, double each) {
        auto& offer = problem.offers[g];
        auto& asked = spot ? offer.spot_price : offer.price;
        PriceRange range{request.gpus[g].name, spot, each};
        const double today = asked;
        int pieces = 0;
        for (const auto& rented : plan.rentals)
            if (rented.gpu == range.gpu) pieces = (spot ? rented.spot : rented.count) / offer.gpus;
        const double rest = cost - pieces * today;
        /// From a trial price towards today's, until the plan is as cheap as any.
        const auto end = [&](double price) {
            for (int i = 0; i < 50; ++i) {
                asked = price;
                const auto other = instance.solve(problem, RentalGoal::cost);
                const double own = rest + pieces * price;
                if (!other.has_plan() || !other.optimal) {  // nothing is known of this price
                    range.proven = false;
                    return today;
                }
                if (other.cost >= own - std::max(1e-6, options.search.solve.mip_gap) * own) return price;
                const int theirs = (spot ? other.spot : other.usual)[g];
                if (theirs == pieces) break;
                const double meet = (other.cost - theirs * price - rest) / (pieces - theirs);
                if (!((meet < price) == (price > today)) || meet == price) return price;
                price = price > today ? std::max(meet, today) : std::min(meet, today);
            }
            return today;
        };
        const double far = 1000 * (today + cost + 1);
        const double low = end(0), high = range.proven ? end(far) : today;
        range.low = (range.proven ? low : today) / offer.gpus;
        range.high = !range.proven ? today / offer.gpus
                     : high >= far ? std::numeric_limits<double>::infinity()
                                   : high / offer.gpus;
        asked = today;
        ranges.push_back(std::move(range));
    };
    for (std::size_t g = 0; g < request.gpus.size(); ++g) {
        find(g, false, *request.gpus[g].price);
        if (!request.terms.empty() && request.terms[g].spot_price)
            find(g, true, *request.terms[g].spot_price);
    }
    return ranges;
}

}  // namespace gpusched::serving
