// SPDX-License-Identifier: Apache-2.0
// Planning: validates options, and runs the rental planner or the batch planner. Replanning: the plan for a
// changed request that starts the fewest replicas.
#include "serving/instance.hpp"
#include "serving/rental_instance.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/plan_serving.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving {

GPUSCHED_EXPORT void validate(const PlannerOptions& options) {
    Problems problems;
    collect(problems, [&] { validate(options.estimate); });
    check_fields(problems, options);
    if (options.deadline) {
        check_range(problems, "deadline", *options.deadline, std::numeric_limits<double>::min(),
                    std::numeric_limits<double>::max());
        if (options.routing == Routing::round_robin) problems.add("deadline: not with routing 'round_robin'");
    }
    problems.throw_if_any();
}

namespace detail {

/// @throws InvalidInput if a valid request and valid options do not fit together
static void check_together(const ServingRequest& request, const PlannerOptions& options) {
    Problems problems;
    if (!request.has_rates()) {
        if (options.targets.any())
            problems.add("targets: need rates; the requests of a batch have no arrival times");
        if (options.goal != Goal::cheapest)
            problems.add(bad_value("goal", gpusched::quoted(enum_name(options.goal)), "rates, not a batch"));
    } else if (options.deadline) {
        problems.add("deadline: not with rates, which have no end");
    }
    if (is_rental(request, options) && is_restricted(options))
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
        plan = detail::plan_rental_explained(detail::RentalInstance(request, options, solver, context)).plan;
    } else {
        const Budget budget(context, options.search.solve.time_limit);
        plan = detail::plan_batch(request, options, solver, context);
        plan.calibration = calibrate(request, options.estimate);
        auto rest = options;
        rest.search.solve.time_limit = budget.remaining_s();
        detail::explain_batch(plan, request, rest, solver, context);
    }
    detail::add_hints(plan, request, options);
    detail::add_errors(plan, request, options.estimate);
    return plan;
}

namespace detail {

/// The problem with running replicas. Tokens are GPU types of price 0: a kept replica needs one of its
/// deployment, a new replica one for starts.
struct ReplanProblem {
    ServingInstance instance{};
    std::vector<bool> fresh{};  ///< per configuration: its replicas are new
    int running = 0;            ///< replicas that run
    ServingProblem all{};       ///< if deployments are left out: the problem with all of them
};

static ReplanProblem replan_problem(const ServingRequest& request,
                                    const std::vector<PlannedReplicas>& running,
                                    const PlannerOptions& options, const MustStop& stop) {
    const auto all = all_deployments(request, options, stop, running);
    std::vector<int> runs(all.deployments.size(), 0);
    ReplanProblem change;
    for (const auto& replicas : running) {
        change.running += replicas.count;
        for (const auto c : configurations_of(all, replicas)) runs[c] += replicas.count;
    }
    const auto undominated = undominated_configurations(all.problem);
    const auto fresh = best_per_dollar(all.problem, undominated, options.max_deployments);
    change.instance.left_out = static_cast<int>(undominated.size() - fresh.size());
    auto& problem = change.instance.problem;
    problem = all.problem;
    problem.configurations.clear();
    std::set<std::string> types;
    for (const auto& gpu : problem.gpus) types.insert(gpu.name);
    problem.gpus.push_back({unique_name("may be started", types), 0, 0});
    if (change.instance.left_out > 0) change.all = all.problem;
    const auto start = problem.gpus.size() - 1;
    for (std::size_t c = 0; c < runs.size(); ++c)
        if (runs[c] > 0)
            problem.gpus.push_back(
                {unique_name("runs: " + all.problem.configurations[c].name, types), 0, runs[c]});
    std::size_t token = start;
    const auto add = [&](std::size_t c, bool is_new) {
        auto configuration = all.problem.configurations[c];
        configuration.gpus.resize(problem.gpus.size(), 0);
        configuration.gpus[is_new ? start : ++token] = 1;
        configuration.name += is_new ? " (new)" : " (runs)";
        problem.configurations.push_back(std::move(configuration));
        change.instance.deployments.push_back(all.deployments[c]);
        change.instance.sources.push_back(all.sources[c]);
        change.fresh.push_back(is_new);
    };
    for (std::size_t c = 0; c < runs.size(); ++c)
        if (runs[c] > 0) add(c, false);
    for (const auto c : fresh) add(static_cast<std::size_t>(c), true);
    return change;
}

/// Joins the rows of kept and new replicas of one deployment.
static void join(ServingPlan& plan) {
    std::vector<PlannedReplicas> joined;
    for (auto& replicas : plan.replicas) {
        const auto same = std::find_if(joined.begin(), joined.end(), [&](const PlannedReplicas& other) {
            return other.model == replicas.model && other.deployment == replicas.deployment;
        });
        if (same == joined.end()) {
            joined.push_back(std::move(replicas));
            continue;
        }
        same->count += replicas.count;
        same->cost += replicas.cost;
        for (std::size_t w = 0; w < same->share.size(); ++w) same->share[w] += replicas.share[w];
    }
    plan.replicas = std::move(joined);
}

/// Replans a rental: the cheapest plan first, then fewer starts within its slack.
static ReplanResult replan_rental(const ServingRequest& request, const std::vector<PlannedReplicas>& running,
                                  const ReplanOptions& options, const milp::AnySolver& solver,
                                  const Context& context) {
    const RentalInstance instance(request, options.planner, solver, context, running);
    auto outcome = plan_rental_explained(instance, options.slack, running);
    ReplanResult result{.plan = std::move(outcome.plan)};
    add_hints(result.plan, request, options.planner);
    add_errors(result.plan, request, options.planner.estimate);
    if (!result.plan.has_plan()) return result;
    result.cost_free = outcome.cheapest.value_or(result.plan.cost);
    // A deployment can have several rows for different kinds of requests; its replicas count together.
    std::vector<std::pair<const PlannedReplicas*, int>> more;  // replicas beyond the running ones
    const auto add = [&](const PlannedReplicas& replicas, int count) {
        const auto same = std::find_if(more.begin(), more.end(), [&](const auto& row) {
            return row.first->model == replicas.model &&
                   row.first->deployment.stages == replicas.deployment.stages;
        });
        if (same == more.end())
            more.emplace_back(&replicas, count);
        else
            same->second += count;
    };
    for (const auto& old : running) add(old, -old.count);
    for (const auto& now : result.plan.replicas) add(now, now.count);
    for (const auto& [replicas, count] : more) (count > 0 ? result.starts : result.stops) += std::abs(count);
    return result;
}

/// Replans a batch: the fewest starts by bisection.
static ReplanResult replan_batch(const ServingRequest& request, const std::vector<PlannedReplicas>& running,
                                 const ReplanOptions& options, const milp::AnySolver& solver,
                                 const Context& context) {
    Budget budget(context, options.planner.search.solve.time_limit);
    bool ended = false;
    auto change = replan_problem(request, running, options.planner,
                                 [&] { return ended = ended || budget.exhausted(); });
    if (ended) {
        ReplanResult result;
        result.plan.status =
            budget.reason() == StopReason::cancelled ? milp::Status::cancelled : milp::Status::time_limit;
        result.plan.message = enumeration_ended;
        result.plan.rented.assign(request.gpus.size(), 0);
        return result;
    }
    auto& problem = change.instance.problem;
    const auto start = request.gpus.size();
    bool sure = true;  // the solver answered every question
    const auto within = [&](int starts) {
        problem.gpus[start].available = starts;
        auto search = options.planner.search;
        // The problem without starts is small and the reference for the others, so it ignores the time
        // already used.
        if (starts > 0) search.solve.time_limit = budget.remaining_s();
        auto found = solve_serving_plan(problem, search, solver, context);
        sure = sure && (found.optimal || found.status == milp::Status::infeasible);
        return found;
    };
    std::int64_t gpus = 0;
    for (std::size_t g = 0; g < start; ++g) gpus += request.available[g];
    // A replica takes at least one GPU, so there are never more starts than GPUs.
    int most = static_cast<int>(std::min<std::int64_t>(gpus, 1'000'000'000));
    if (options.max_starts) most = std::min(most, *options.max_starts);

    ReplanResult result;
    auto best = within(most);
    auto plan = best;
    if (best.has_plan()) {
        result.makespan_free = serving::makespan(problem, best.allocation);
        const auto count = [&](const ServingSolution& p, bool fresh) {
            int sum = 0;
            for (std::size_t c = 0; c < change.fresh.size(); ++c)
                if (change.fresh[c] == fresh) sum += p.allocation.replicas[c];
            return sum;
        };
        // Makespans within the tolerance of the search count as equal.
        const double accepted =
            result.makespan_free * (1 + std::max(options.slack, options.planner.search.tolerance));
        const auto good = [&](const ServingSolution& p) {
            return p.has_plan() && serving::makespan(problem, p.allocation) <= accepted;
        };
        int high = count(best, true);
        int low = -1;  // this many starts are too few
        const auto none = within(0);
        if (none.has_plan()) result.makespan_kept = serving::makespan(problem, none.allocation);
        if (good(none)) {
            plan = none;
            high = 0;
        } else {
            low = 0;
        }
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            auto found = within(middle);
            if (good(found)) {
                high = count(found, true);
                plan = std::move(found);
            } else {
                low = middle;
            }
        }
        result.starts = count(plan, true);
        result.stops = change.running - count(plan, false);
        // The bound holds for all allowed starts, not for the fewer starts of this plan.
        const double makespan = serving::makespan(problem, plan.allocation);
        plan.bound = best.bound;
        if (change.instance.left_out > 0) {
            auto solve = options.planner.search.solve;
            solve.time_limit = budget.remaining_s();
            plan.bound =
                std::min(plan.bound, lower_bound(change.all, std::nullopt, solve, solver, context).value);
        }
        plan.optimal =
            best.optimal && makespan - plan.bound <= options.planner.search.tolerance * (1 + 1e-9) * makespan;
        if (!plan.optimal && plan.status == milp::Status::optimal) plan.status = milp::Status::feasible;
        if (!plan.optimal && plan.message.empty())
            plan.message = sure ? "fewest starts within slack"
                                : "few starts within slack; fewer may do, the solver gave no answer";
    }
    result.plan = described(request, change.instance, plan);
    result.plan.deployments = static_cast<int>(change.instance.deployments.size());
    auto rest = options.planner;
    rest.search.solve.time_limit = budget.remaining_s();
    if (best.has_plan())
        join(result.plan);
    else if (explain_batch(result.plan, request, rest, solver, context) && options.max_starts)
        result.plan.binding.push_back("max_starts: " + std::to_string(*options.max_starts) +
                                      "; with more there is a plan");
    add_hints(result.plan, request, options.planner);
    add_errors(result.plan, request, options.planner.estimate);
    return result;
}

}  // namespace detail

GPUSCHED_EXPORT ReplanResult replan(const ServingRequest& request,
                                    const std::vector<PlannedReplicas>& running, const ReplanOptions& options,
                                    const milp::AnySolver& solver, const Context& context) {
    validate(request);
    validate(options.planner);
    Problems problems;
    if (detail::is_restricted(options.planner) || options.planner.deadline)
        problems.add(
            "planner: expected composition and routing 'optimized', neither uniform_tp nor deadline");
    check_fields(problems, options);
    double all = 0;
    for (const auto& replicas : running)
        if (check_at_least(problems, "count", replicas.count, 0, "running")) all += replicas.count;
    check_range(problems, "count of all together", all, 0.0, 1e9, "running");
    problems.throw_if_any();

    detail::check_together(request, options.planner);
    if (detail::is_rental(request, options.planner)) {
        if (!request.has_rates())
            problems.add("request: replanning a rental needs rates; a batch needs single GPUs at one price");
        if (options.max_starts)
            problems.add("max_starts: not with rates; slack limits the cost of fewer starts");
        problems.throw_if_any();
        return detail::replan_rental(request, running, options, solver, context);
    }
    return detail::replan_batch(request, running, options, solver, context);
}

}  // namespace gpusched::serving
