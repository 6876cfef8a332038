#pragma once

#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/detail/instance.hpp>
#include <gpusched/serving/plan_serving.hpp>

#include <algorithm>
#include <cmath>
#include <set>
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
        for (const auto& demand : served.demands) {
            const auto of = owner + ": demand " + gpusched::quoted(demand.name);
            if (demand.name.empty()) problems.add(bad_value("demand", "''", "a name", owner));
            if (!names.emplace(name, demand.name).second) problems.add(of + ": appears twice");
            check_at_least(problems, "input", demand.shape.input, 1, of);
            check_at_least(problems, "output", demand.shape.output, 1, of);
            check_range(problems, "requests", demand.requests, 0.0, most, of);
        }
    }
    std::set<std::tuple<std::string, std::string, std::string>> measured;
    for (const auto& m : request.measured) {
        const auto owner = "measured throughput of " + gpusched::quoted(m.deployment);
        if (!measured.emplace(m.model, m.deployment, m.demand).second)
            problems.add(owner + ": appears twice for " + gpusched::quoted(m.demand) + " of " +
                         gpusched::quoted(m.model));
        if (!names.contains({m.model, m.demand}))
            problems.add(owner + ": there is no demand " + gpusched::quoted(m.demand) + " of a model " +
                         gpusched::quoted(m.model));
        check_range(problems, "requests_per_s", m.requests_per_s, 0.0, most, owner);
    }
    problems.throw_if_any();
}

GPUSCHED_INLINE void validate(const PlannerOptions& options) {
    validate(options.estimate);
    Problems problems;
    check_at_least(problems, "max_deployments", options.max_deployments, 0);
    detail::check_memory_fraction(problems, options.estimate, options.deployments.memory_fraction);
    if (options.deadline) {
        check_range(problems, "deadline", *options.deadline, std::numeric_limits<double>::min(),
                    std::numeric_limits<double>::max());
        if (options.routing == Routing::round_robin)
            problems.add("deadline: not with routing 'round_robin', which is not planned for");
    }
    problems.throw_if_any();
}

namespace detail {

/// One call of `plan_serving`: several problems, of which the best plan counts.
class Planner {
  public:
    Planner(const PlannerOptions& options, const milp::AnySolver& solver, const Context& context)
        : options_(options), solver_(solver), context_(context),
          budget_(context, options.solve.solve.time_limit) {}

    ServingPlanResult run(const ServingRequest& request) {
        if (options_.composition == Composition::homogeneous) {
            if (request.gpus.empty()) each_degree(request);  // which says that there is no plan
            for (std::size_t g = 0; g < request.gpus.size(); ++g) {
                auto one = request;
                for (std::size_t n = 0; n < request.gpus.size(); ++n) one.available[n] = 0;
                const double price = *request.gpus[g].price;
                one.available[g] = price > 0 ? static_cast<int>(std::min(1e6, request.budget / price + 1e-9))
                                             : request.available[g];
                each_degree(one);
            }
        } else if (options_.composition == Composition::uniform) {
            auto even = request;
            double together = 0;
            for (std::size_t g = 0; g < request.gpus.size(); ++g)
                if (request.available[g] > 0) together += *request.gpus[g].price;
            const double each = together > 0 ? std::min(1e9, request.budget / together + 1e-9) : 1e9;
            for (auto& count : even.available) count = std::min(count, static_cast<int>(each));
            each_degree(even);
        } else {
            each_degree(request);
        }
        best_.status = proved_ || !best_.has_plan() ? best_.status : unproved_;
        if (!proved_) {
            best_.optimal = false;
            if (!best_.has_plan()) best_.status = unproved_;
        }
        if (best_.has_plan() && bound_ < best_.bound) best_.bound = bound_;
        best_.deployments = deployments_;
        best_.left_out = left_out_;
        return std::move(best_);
    }

  private:
    void each_degree(const ServingRequest& request) {
        if (!options_.uniform_tp || options_.deployments.degrees.empty()) return once(request, options_);
        for (const auto degree : options_.deployments.degrees) {
            auto options = options_;
            options.deployments.degrees = {degree};
            options.deployments.max_stages = 1;
            once(request, options);
        }
    }

    void once(const ServingRequest& request, const PlannerOptions& options) {
        const auto all = all_deployments(request, options);
        auto instance = selected(all, options.max_deployments);
        const auto solved = [&](const ServingInstance& of, double part) {
            auto solve = options.solve;
            if (solve.solve.time_limit)
                solve.solve.time_limit = part * std::max(0.0, *solve.solve.time_limit - budget_.elapsed_s());
            auto plan = options.deadline ? milp::cheapest_serving_plan(of.problem, *options.deadline, solve,
                                                                       solver_, context_)
                                         : milp::solve_serving_plan(of.problem, solve, solver_, context_);
            if (plan.has_plan() && options.routing == Routing::round_robin) {
                round_robin(of.problem, plan.allocation);
                plan.bound = 0;
                plan.optimal = false;
            }
            return plan;
        };
        const auto key = [&](const ServingPlanResult& r) { return options.deadline ? r.cost : r.makespan; };
        const auto better = [&](const ServingPlanResult& a, const ServingPlanResult& b) {
            return a.has_plan() && (!b.has_plan() || key(a) < key(b));
        };
        // Plans of one type are quick to find. Where time is short or deployments are left out, they may be better than what is
        // found among all; what the best of them uses is not left out.
        const auto types = static_cast<int>(request.gpus.size());
        const bool may_help = options.solve.solve.time_limit || instance.left_out > 0;
        ServingPlanResult single;
        std::vector<int> used;
        for (int g = 0; may_help && g < types; ++g) {
            std::vector<int> alone;
            for (std::size_t c = 0; c < all.problem.configurations.size(); ++c) {
                const auto& gpus = all.problem.configurations[c].gpus;
                if (gpus[static_cast<std::size_t>(g)] > 0 &&
                    std::count_if(gpus.begin(), gpus.end(), [](int n) { return n > 0; }) == 1)
                    alone.push_back(static_cast<int>(c));
            }
            if (alone.empty() || alone.size() == all.deployments.size()) continue;
            int unused = 0;
            const auto keep = chosen(all.problem, alone, options.max_deployments, unused);
            const auto one = kept(all, keep);
            const auto plan = solved(one, 0.5 / (types - g));
            auto found = described(request, one, plan);
            if (!better(found, single)) continue;
            single = std::move(found);
            used.clear();
            for (std::size_t i = 0; i < keep.size(); ++i)
                if (plan.allocation.replicas[i] > 0) used.push_back(keep[i]);
        }
        if (instance.left_out > 0) instance = selected(all, options.max_deployments, used);
        deployments_ += static_cast<int>(all.deployments.size());
        left_out_ += instance.left_out;
        const auto plan = solved(instance, 1.0);
        if (plan.status != milp::Status::optimal && plan.status != milp::Status::infeasible && proved_) {
            proved_ = false;
            unproved_ = plan.status;
        }
        auto found = described(request, instance, plan);
        if (found.status != milp::Status::infeasible) bound_ = std::min(bound_, found.bound);
        if (!found.optimal && better(single, found)) {
            single.status = found.status;
            single.bound = found.bound;
            single.optimal = false;
            single.message = found.message;
            found = std::move(single);
        }
        if (first_ || better(found, best_)) best_ = std::move(found);
        first_ = false;
    }

    const PlannerOptions& options_;
    const milp::AnySolver& solver_;
    const Context& context_;
    Budget budget_;
    ServingPlanResult best_;
    double bound_ = std::numeric_limits<double>::infinity();
    int deployments_ = 0, left_out_ = 0;
    bool first_ = true, proved_ = true;
    milp::Status unproved_ = milp::Status::failed;
};

}  // namespace detail

GPUSCHED_INLINE ServingInstance serving_instance(const ServingRequest& request,
                                                 const PlannerOptions& options) {
    validate(request);
    validate(options);
    return detail::selected(detail::all_deployments(request, options), options.max_deployments);
}

GPUSCHED_INLINE ServingPlanResult plan_serving(const ServingRequest& request, const PlannerOptions& options,
                                               const milp::AnySolver& solver, const Context& context) {
    validate(request);
    validate(options);
    return detail::Planner(options, solver, context).run(request);
}

GPUSCHED_INLINE ServingPlanResult plan_serving(const ServingRequest& request, const PlannerOptions& options,
                                               const std::string& solver, const Context& context) {
    return plan_serving(request, options, milp::find_solver(solver), context);
}

}  // namespace gpusched::serving
