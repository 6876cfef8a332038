// SPDX-License-Identifier: Apache-2.0
// What more or less money would change.
#pragma once

#include <gpusched/serving/plan_serving.hpp>

#include <string>
#include <vector>

namespace gpusched::serving {

/// A plan for one budget of a sweep.
struct BudgetPlan {
    double budget = 0;  ///< $/h
    ServingPlan plan{};
};

/// A plan for each of several budgets, smallest first: how makespan, cost per request and what is rented depend on the money.
///
/// Each plan is made as by `plan_serving`, with the whole time limit for itself. A plan for less money is one for more: its
/// deployments are not left out there, and where the search ends with something slower (a limit struck, or within the
/// tolerance) it stands. So makespans never grow with the budget.
/// @param request its own budget is not used
/// @param budgets $/h, each >= 0, in any order, none twice
/// @param options without a deadline: within one, the cheapest plan is the same for every budget that pays it
/// @throws InvalidInput with everything that is wrong; BackendError where the solver is missing
/// @note deterministic on one thread unless a time limit strikes
[[nodiscard]] std::vector<BudgetPlan>
sweep_budgets(const ServingRequest& request, const std::vector<double>& budgets,
              const PlannerOptions& options, const milp::AnySolver& solver, const Context& context = {});
[[nodiscard]] std::vector<BudgetPlan> sweep_budgets(const ServingRequest& request,
                                                    const std::vector<double>& budgets,
                                                    const PlannerOptions& options = {},
                                                    const std::string& solver = "auto",
                                                    const Context& context = {});

}  // namespace gpusched::serving
