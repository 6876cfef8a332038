// SPDX-License-Identifier: Apache-2.0
#include "serving/instance.hpp"
#include "serving/measured_loads.hpp"
#include "serving/planner.hpp"
#include "serving/why_refused.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/plan_serving.hpp>

#include <limits>
#include <string>

namespace gpusched::serving {

GPUSCHED_EXPORT void validate(const PlannerOptions& options) {
    Problems problems;
    try {
        validate(options.estimate);
    } catch (const InvalidInput& error) {
        for (const auto& problem : error.problems()) problems.add(problem);
    }
    check_fields(problems, options);
    if (options.deadline) {
        check_range(problems, "deadline", *options.deadline, std::numeric_limits<double>::min(),
                    std::numeric_limits<double>::max());
        if (options.routing == Routing::round_robin)
            problems.add("deadline: not with routing 'round_robin', which is not planned for");
    }
    problems.throw_if_any();
}

namespace detail {

/// What a valid request and valid options cannot be together.
void check_together(const ServingRequest& request, const PlannerOptions& options) {
    Problems problems;
    if (!request.has_rates()) {
        if (options.targets.any())
            problems.add("targets: need rates: a batch that is there at once has no latency to speak of");
        if (options.goal != Goal::cheapest)
            problems.add(bad_value("goal", gpusched::quoted(enum_name(options.goal)), "rates, not a batch"));
    } else if (options.deadline) {
        problems.add("deadline: not with rates, which have no end");
    }
    if (is_rental(request, options) && (options.composition != Composition::optimized ||
                                        options.routing != Routing::optimized || options.uniform_tp))
        problems.add(
            "composition, routing, uniform_tp: those of the paper's ablations need a batch, GPUs one by one "
            "and one price");
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
        plan = detail::Planner(options, solver, context).run(request);
        plan.calibration = calibrate(request, options.estimate);
        detail::explain_batch(plan, request, options, solver, context);
    }
    detail::tell_of_loads(plan, request, options);
    return plan;
}

GPUSCHED_EXPORT ServingPlan plan_serving(const ServingRequest& request, const PlannerOptions& options,
                                         const std::string& solver, const Context& context) {
    return plan_serving(request, options, milp::find_solver(solver), context);
}

}  // namespace gpusched::serving
