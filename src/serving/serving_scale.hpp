// SPDX-License-Identifier: Apache-2.0
// Serving problems in units of their own.
#pragma once

#include <gpusched/serving/solve_serving_plan.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

/// A problem in units of its own, so that the solver's tolerances mean the same for all: seconds in those of a bound, money in
/// those of what can be spent; both powers of two, which loses no digits. Configurations that cannot be used are left out.
struct ScaledServing {
    ServingProblem problem{};
    std::vector<int> kept{};  ///< indices into the problem as it was
    double second = 1;        ///< of the problem here, in seconds

    ScaledServing(const ServingProblem& whole, bool prune) {
        const auto most = most_replicas(whole);
        std::vector<int> usable;
        for (std::size_t c = 0; c < most.size(); ++c)
            if (most[c] > 0) usable.push_back(static_cast<int>(c));
        problem = with_configurations(whole, usable);
        kept = std::move(usable);
        if (prune) {
            auto better = undominated_configurations(problem);
            problem = with_configurations(problem, better);
            for (auto& c : better) c = kept[static_cast<std::size_t>(c)];
            kept = std::move(better);
        }
        const auto power = [](double x) { return std::ldexp(1.0, std::ilogb(x)); };
        for (const double time : {closed_form_bound(problem), slowest_makespan(problem)})
            if (time > 0 && std::isfinite(time)) {
                second = power(time);
                break;
            }
        for (auto& w : problem.workloads)
            if (w.requests > 0) w.requests = std::max(w.requests / second, 1e-30);
        double all = 0;
        for (const auto& gpu : problem.gpus) all += gpu.price * gpu.available;
        problem.budget = std::min(problem.budget, all * (1 + 1e-9));
        if (problem.budget <= 0) return;
        const double unit = power(problem.budget);
        problem.budget /= unit;
        for (auto& gpu : problem.gpus) gpu.price /= unit;
    }
};

/// The plan in terms of the problem as it was.
inline ServingSolution unscaled(ServingSolution plan, const ServingProblem& problem,
                                const ScaledServing& scaled) {
    plan.bound *= scaled.second;
    if (!plan.has_plan()) return plan;
    ServingAllocation all{
        std::vector<int>(problem.configurations.size(), 0),
        std::vector<std::vector<double>>(problem.configurations.size(),
                                         std::vector<double>(problem.workloads.size(), 0.0))};
    for (std::size_t i = 0; i < scaled.kept.size(); ++i) {
        const auto c = static_cast<std::size_t>(scaled.kept[i]);
        all.replicas[c] = plan.allocation.replicas[i];
        all.share[c] = plan.allocation.share[i];
    }
    plan.allocation = std::move(all);
    plan.makespan = makespan(problem, plan.allocation);
    plan.cost = cost(problem, plan.allocation);
    plan.bound = std::min(plan.bound, plan.makespan);
    return plan;
}

}  // namespace gpusched::serving::detail
