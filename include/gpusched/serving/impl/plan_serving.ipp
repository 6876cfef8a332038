#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/serving/detail/instance.hpp>
#include <gpusched/serving/detail/planner.hpp>
#include <gpusched/serving/plan_serving.hpp>

#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace gpusched::serving {

GPUSCHED_INLINE void validate(const ServingRequest& request) {
    Problems problems;
    const auto take = [&](auto&& check) {
        try {
            check();
        } catch (const InvalidInput& error) {
            for (const auto& problem : error.problems()) problems.add(problem);
        }
    };
    take([&] { validate(request.gpus); });
    const double most = std::numeric_limits<double>::max();
    for (const auto& gpu : request.gpus)
        if (!gpu.price) problems.add("GPU type " + gpusched::quoted(gpu.name) + ": price is missing");
    if (request.available.size() != request.gpus.size())
        problems.add(bad_value("available", std::to_string(request.available.size()) + " entries",
                               std::to_string(request.gpus.size()) + ", one per GPU type"));
    for (const auto count : request.available) check_at_least(problems, "available", count, 0);
    check_range(problems, "budget", request.budget, 0.0, most);
    std::set<std::string> models;
    std::set<std::pair<std::string, std::string>> names;
    for (const auto& served : request.models) {
        const auto& name = served.model.name;
        const auto owner = "model " + gpusched::quoted(name);
        if (name.empty()) problems.add(bad_value("name", "''", "a name", "model"));
        if (!models.insert(name).second) problems.add(owner + ": appears twice");
        take([&] { validate(served.model); });
        for (const auto& workload : served.workloads) {
            const auto of = owner + ": workload " + gpusched::quoted(workload.name);
            if (workload.name.empty()) problems.add(bad_value("workload", "''", "a name", owner));
            if (!names.emplace(name, workload.name).second) problems.add(of + ": appears twice");
            check_fields(problems, workload.shape, of);
            check_range(problems, "requests", workload.requests, 0.0, most, of);
        }
    }
    std::set<std::tuple<std::string, std::string, std::string>> measured;
    for (const auto& m : request.measured) {
        const auto owner = "measured throughput of " + gpusched::quoted(m.deployment);
        if (!measured.emplace(m.model, m.deployment, m.workload).second)
            problems.add(owner + ": appears twice for " + gpusched::quoted(m.workload) + " of " +
                         gpusched::quoted(m.model));
        if (!names.contains({m.model, m.workload}))
            problems.add(owner + ": there is no workload " + gpusched::quoted(m.workload) + " of a model " +
                         gpusched::quoted(m.model));
        check_range(problems, "requests_per_s", m.requests_per_s, 0.0, most, owner);
    }
    problems.throw_if_any();
}

GPUSCHED_INLINE void validate(const PlannerOptions& options) {
    Problems problems;
    try {
        validate(options.estimate);
    } catch (const InvalidInput& error) {
        for (const auto& problem : error.problems()) problems.add(problem);
    }
    check_fields(problems, options);
    detail::check_memory_fraction(problems, options.estimate, options.deployments.memory_fraction);
    if (options.deadline) {
        check_range(problems, "deadline", *options.deadline, std::numeric_limits<double>::min(),
                    std::numeric_limits<double>::max());
        if (options.routing == Routing::round_robin)
            problems.add("deadline: not with routing 'round_robin', which is not planned for");
    }
    problems.throw_if_any();
}

GPUSCHED_INLINE ServingInstance serving_instance(const ServingRequest& request,
                                                 const PlannerOptions& options) {
    validate(request);
    validate(options);
    return detail::selected(detail::all_deployments(request, options), options.max_deployments);
}

GPUSCHED_INLINE ServingPlan plan_serving(const ServingRequest& request, const PlannerOptions& options,
                                         const milp::AnySolver& solver, const Context& context) {
    validate(request);
    validate(options);
    return detail::Planner(options, solver, context).run(request);
}

GPUSCHED_INLINE ServingPlan plan_serving(const ServingRequest& request, const PlannerOptions& options,
                                         const std::string& solver, const Context& context) {
    return plan_serving(request, options, milp::find_solver(solver), context);
}

}  // namespace gpusched::serving
