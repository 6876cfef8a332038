// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/curve.hpp>
#include <gpusched/serving/rates.hpp>

#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

namespace detail {

/// What all kinds of requests must keep: the targets of the call, and of the kinds' own the shortest.
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

}  // namespace gpusched::serving
