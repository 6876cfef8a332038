// SPDX-License-Identifier: Apache-2.0
// Planning: validates options, and runs the rental planner or the batch planner.
#include "serving/explain_plan.hpp"
#include "serving/instance.hpp"
#include "serving/rate_planner.hpp"
#include "serving/request_findings.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/plan_serving.hpp>

#include <limits>
#include <string>

namespace gpusched::serving {

GPUSCHED_EXPORT void validate(const PlannerOptions& options) {
    Problems problems;
    detail::collect(problems, [&] { validate(options.estimate); });
    check_fields(problems, options);
    if (options.deadline) {
        check_range(problems, "deadline", *options.deadline, std::numeric_limits<double>::min(),
                    std::numeric_limits<double>::max());
        if (options.routing == Routing::round_robin) problems.add("deadline: not with routing 'round_robin'");
    }
    problems.throw_if_any();
}

namespace detail {

void check_together(const ServingRequest& request, const PlannerOptions& options) {
    Problems problems;
    if (!request.has_rates()) {
        if (options.targets.any())
            problems.add("targets: need rates; the requests of a batch have no arrival times");
        if (options.goal != Goal::cheapest)
            problems.add(bad_value("goal", gpusched::quoted(enum_name(options.goal)), "rates, not a batch"));
    } else if (options.deadline) {
        problems.add("deadline: not with rates, which have no end");
    }
    if (is_rental(request, options) && (options.composition != Composition::optimized ||
                                        options.routing != Routing::optimized || options.uniform_tp))
        problems.add(
            "composition, routing, uniform_tp: need a batch, single GPUs and one price per GPU type");
    problems.throw_if_any();
}

}  // namespace detail

GPUSCHED_EXPORT ServingInstance serving_instance(const ServingRequest& request,
                                                 const PlannerOptions& options) {
    validate(request);
    validate(options);
    return detail::selected(detail::all_deployments(request, options), options.max_deployments);
}

GPUSCHED_EXPORT ServingPlan plan_serving(const ServingRequest& request, const PlannerOptions& options,
                                         const milp::AnySolver& solver, const Context& context) {
    validate(request);
    validate(options);
    detail::check_together(request, options);
    ServingPlan plan;
    if (detail::is_rental(request, options)) {
        const detail::RentalInstance instance(request, options, solver, context);
        detail::RatePlanner planner(instance);
        plan = detail::run_explained(planner, instance);
    } else {
        plan = detail::plan_batch(request, options, solver, context);
        plan.calibration = calibrate(request, options.estimate);
        detail::explain_batch(plan, request, options, solver, context);
    }
    detail::add_measurement_hints(plan, request, options);
    return plan;
}

}  // namespace gpusched::serving
