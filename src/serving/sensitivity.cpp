// SPDX-License-Identifier: Apache-2.0
// Sensitivity of a plan: curves, budget sweeps, price ranges.
#include "serving/instance.hpp"
#include "serving/rental_instance.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/sensitivity.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::serving {

namespace detail {

/// The targets of the call, else the shortest of the kinds.
static LatencyTargets shortest_targets(const ServingRequest& request, const LatencyTargets& call) {
    LatencyTargets shortest;
    for (const auto& served : request.models)
        for (const auto& workload : served.workloads)
            visit_fields(std::type_identity<LatencyTargets>{}, [&](const char*, auto member, const auto&...) {
                const auto& own = workload.targets.*member;
                auto& least = shortest.*member;
                if (workload.rate > 0 && own && (!least || *own < *least)) least = own;
            });
    return merged(shortest, call);
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<CurvePoint> curve(const ServingRequest& request, const std::vector<double>& rates,
                                              const std::vector<LatencyTargets>& targets,
                                              const PlannerOptions& options, const milp::AnySolver& solver,
                                              const Context& context) {
    Problems problems;
    for (std::size_t i = 0; i < rates.size(); ++i)
        check_range(problems, "rates[" + std::to_string(i) + "]", rates[i],
                    std::numeric_limits<double>::min(), std::numeric_limits<double>::max());
    for (std::size_t i = 0; i < targets.size(); ++i)
        check_fields(problems, targets[i], "targets[" + std::to_string(i) + "]");
    problems.throw_if_any();
    std::vector<CurvePoint> points;
    double own = 0;
    for (const auto& served : request.models)
        for (const auto& workload : served.workloads) own += workload.rate;
    if (rates.empty() && !(own > 0))
        throw InvalidInput("rates: none, and the request has none of its own; expected rates above 0");
    for (const double rate : rates.empty() ? std::vector{own} : rates)
        for (const auto& target : targets.empty() ? std::vector{LatencyTargets{}} : targets) {
            auto each = options;
            each.targets = merged(options.targets, target);
            const auto asked = with_rate(request, rate);
            points.push_back({rate, detail::shortest_targets(asked, each.targets),
                              plan_serving(asked, each, solver, context)});
        }
    return points;
}

GPUSCHED_EXPORT std::vector<BudgetPlan> sweep_budgets(const ServingRequest& request,
                                                      const std::vector<double>& budgets,
                                                      const PlannerOptions& options,
                                                      const milp::AnySolver& solver, const Context& context) {
    Problems problems;
    auto one = request;
    one.budget = 0;
    collect(problems, [&] { validate(one); });
    collect(problems, [&] { validate(options); });
    if (problems.empty() && detail::is_rental(request, options))
        problems.add("request: expected a batch, single GPUs and one price per type; `curve` plans rates and "
                     "machines");
    if (options.deadline)
        problems.add("deadline: not in a sweep: the cheapest plan is the same for every budget that pays it");
    if (budgets.empty()) problems.add(bad_value("budgets", "none", "at least one"));
    std::set<double> sorted;
    for (std::size_t i = 0; i < budgets.size(); ++i) {
        const auto field = "budgets[" + std::to_string(i) + "]";
        if (check_range(problems, field, budgets[i], 0.0, std::numeric_limits<double>::max()) &&
            !sorted.insert(budgets[i]).second)
            problems.add(field + ": " + number_text(budgets[i]) + " appears twice");
    }
    problems.throw_if_any();
    std::vector<BudgetPlan> plans;
    for (const double budget : sorted) {
        one.budget = budget;
        const ServingPlan none;
        auto plan =
            detail::plan_batch(one, options, solver, context, plans.empty() ? none : plans.back().plan);
        plans.push_back({budget, std::move(plan)});
    }
    return plans;
}

GPUSCHED_EXPORT std::vector<PriceRange> price_ranges(const ServingRequest& request, const ServingPlan& plan,
                                                     const PlannerOptions& options,
                                                     const milp::AnySolver& solver, const Context& context) {
    validate(request);
    validate(options);
    if (!request.has_rates() || options.goal != Goal::cheapest || !plan.has_plan())
        throw InvalidInput("plan: expected a plan of a request with rates, with goal 'cheapest'");
    // Without a budget limit, because the affordable deployments depend on the price. Those of the plan are
    // always considered.
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
        /// Follows the cheaper plan's line from a trial price towards today's, until this plan is as cheap as
        /// any.
        const auto end = [&](double price) {
            for (int i = 0; i < 50; ++i) {
                asked = price;
                const auto other = instance.solve(problem, RentalGoal::cost);
                const double own = rest + pieces * price;
                if (!other.has_plan() || !other.optimal) {  // no answer for this price
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
