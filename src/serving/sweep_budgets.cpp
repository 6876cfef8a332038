// SPDX-License-Identifier: Apache-2.0
#include "serving/planner.hpp"
#include "serving/rental_instance.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/sweep_budgets.hpp>

#include <limits>
#include <set>
#include <string>
#include <utility>

namespace gpusched::serving {

GPUSCHED_EXPORT std::vector<BudgetPlan> sweep_budgets(const ServingRequest& request,
                                                      const std::vector<double>& budgets,
                                                      const PlannerOptions& options,
                                                      const milp::AnySolver& solver, const Context& context) {
    Problems problems;
    const auto take = [&](auto&& check) {
        try {
            check();
        } catch (const InvalidInput& error) {
            for (const auto& problem : error.problems()) problems.add(problem);
        }
    };
    auto one = request;
    one.budget = 0;
    take([&] { validate(one); });
    take([&] { validate(options); });
    if (problems.empty() && detail::is_rental(request, options))
        problems.add("request: expected a batch and GPUs one by one at one price; rates and machines are "
                     "those of `curve`");
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
            detail::Planner(options, solver, context).run(one, plans.empty() ? none : plans.back().plan);
        plans.push_back({budget, std::move(plan)});
    }
    return plans;
}

GPUSCHED_EXPORT std::vector<BudgetPlan> sweep_budgets(const ServingRequest& request,
                                                      const std::vector<double>& budgets,
                                                      const PlannerOptions& options,
                                                      const std::string& solver, const Context& context) {
    return sweep_budgets(request, budgets, options, milp::find_solver(solver), context);
}

}  // namespace gpusched::serving
