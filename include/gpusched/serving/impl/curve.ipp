#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/serving/curve.hpp>
#include <gpusched/serving/rates.hpp>

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::serving {

GPUSCHED_INLINE std::vector<CurvePoint> curve(const ServingRequest& request, const std::vector<double>& rates,
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
        for (const auto& target : targets.empty() ? std::vector{options.targets} : targets) {
            auto each = options;
            each.targets = target;
            points.push_back({rate, target, plan_serving(with_rate(request, rate), each, solver, context)});
        }
    return points;
}

}  // namespace GPUSCHED_NAMESPACE::serving
