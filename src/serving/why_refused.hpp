// SPDX-License-Identifier: Apache-2.0
// What would make a plan of rentals possible, in words.
#pragma once

#include "serving/rate_planner.hpp"
#include "serving/replica_capacity.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace gpusched::serving::detail {

/// Six digits, none of them too low: what is named as enough is enough.
inline std::string rounded_up(double value) {
    if (!(value > 0)) return number_text(value);
    const double unit = std::pow(10.0, std::floor(std::log10(value)) - 5);
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.6g", std::ceil(value / unit - 1e-6) * unit);
    return text.data();
}

/// One question after a refused request: each answer changes one limit, plans again and names the least that would do.
class WhyRefused {
  public:
    /// @param instance  for which no plan was found; must outlive this object
    explicit WhyRefused(const RentalInstance& instance)
        : instance_(instance), request_(instance.request()), options_(instance.options()), plenty_(request_) {
        for (auto& count : plenty_.available) count = std::max(count, most_gpus);
        plenty_.budget = std::numeric_limits<double>::infinity();
    }

    [[nodiscard]] std::vector<std::string> answers() const {
        auto found = by_kind();
        if (found.empty()) found = by_limit();
        if (found.empty()) found = by_limits_together();
        if (found.empty())
            found.emplace_back("no plan was found with more GPUs, more budget or without targets, either");
        return found;
    }

  private:
    using Answers = std::vector<std::string>;

    /// The least of a latency over deployments, each measured at its lowest load or else estimated of an idle replica.
    struct Quickest {
        double seconds = std::numeric_limits<double>::infinity();
        std::string what{};
        void consider(const std::vector<MeasuredThroughput>& rows, bool first_token, double idle,
                      const std::string& deployment) {
            const auto known = rows_with(rows, first_token);
            const double value = known.empty() ? idle : *latency_of(known.front(), first_token);
            if (value >= seconds) return;
            seconds = value;
            what = known.empty() ? "what the quickest idle deployment (" + deployment + ") takes"
                                 : "the least that was measured (" + deployment + " at " +
                                       number_text(known.front().requests_per_s) + " requests/s)";
        }
    };

    /// Kinds of requests that no deployment serves within their targets, however many there are.
    [[nodiscard]] Answers by_kind() const {
        Answers found;
        const auto all = all_deployments(plenty_, options_);
        for (std::size_t w = 0; w < instance_.kinds().size(); ++w) {
            const auto& kind = instance_.kinds()[w];
            if (all.problem.workloads[w].requests <= 0) continue;
            const auto owner = "workload " + gpusched::quoted(all.problem.workloads[w].name) + " of " +
                               gpusched::quoted(request_.models[kind.model].model.name);
            Quickest first, step;
            bool possible = false, measured_none = false, keeps_all = false, told = false;
            for (std::size_t c = 0; c < all.deployments.size(); ++c) {
                if (all.problem.configurations[c].model != all.problem.workloads[w].model) continue;
                const auto rows = instance_.measured_rows(all, c, w);
                if (all.problem.configurations[c].throughput[w] <= 0) {
                    measured_none = measured_none || !rows.empty();
                    continue;
                }
                possible = true;
                const auto t = instance_.times(all, c, w);
                first.consider(rows, true, t.prefill_s + t.lag_s, all.deployments[c].name);
                step.consider(rows, false, t.steps > 0 ? t.step_s : 0, all.deployments[c].name);
                keeps_all = keeps_all || can_keep(rows, t, kind.targets);
            }
            if (!possible) {
                const std::string cannot = "no deployment of these GPU types ";
                found.push_back(
                    owner + ": " +
                    (measured_none && options_.measured_only
                         ? "every measurement of it says that 0 requests/s are served"
                     : measured_none
                         ? cannot + "can hold one of its requests and was not measured at 0 requests/s"
                     : options_.measured_only ? cannot + "was measured for it"
                                              : cannot + "can hold one of its requests"));
                continue;
            }
            if (keeps_all) continue;
            for (const auto& target : kind.targets) {
                const auto& quickest = target.first_token ? first : step;
                if (quickest.seconds <= target.seconds) continue;
                told = true;
                found.push_back(owner + ": " + target.name + " of " + number_text(target.seconds) +
                                " s is less than " + rounded_up(quickest.seconds) + " s, " + quickest.what);
            }
            if (!told)
                found.push_back(
                    owner +
                    ": no deployment keeps all of its targets at once, even idle or at its lowest measured "
                    "load");
        }
        return found;
    }

    /// The budget, the GPUs of one type, the deadline, pipelines that nobody measured, the targets: each alone.
    [[nodiscard]] Answers by_limit() const {
        Answers found;
        if (std::isfinite(request_.budget))
            if (const auto cost = least_budget())
                found.push_back("budget: " + number_text(request_.budget) + " $/h; " + rounded_up(*cost) +
                                " $/h would do");
        for (std::size_t g = 0; g < request_.gpus.size(); ++g)
            if (const auto count = fewest_gpus(g))
                found.push_back("GPU type " + gpusched::quoted(request_.gpus[g].name) + ": " +
                                std::to_string(request_.available[g]) + " available; " +
                                std::to_string(*count) + " would do");
        if (options_.deadline) {
            auto patient = options_;
            patient.deadline.reset();
            if (const auto plan = plan_of(request_, patient); plan.has_plan())
                found.push_back("deadline: " + number_text(*options_.deadline) + " s; " +
                                rounded_up(plan.makespan) + " s would do");
        }
        auto pipelines = options_;
        pipelines.unmeasured_pipelines = true;
        if (!options_.unmeasured_pipelines)
            if (const auto plan = plan_of(request_, pipelines); plan.has_plan())
                found.push_back("unmeasured_pipelines: with them there is a plan for " +
                                rounded_up(plan.cost) + " $/h by estimates that nobody checked");
        if (!instance_.any_targets()) return found;
        auto lax = request_;
        for (auto& served : lax.models)
            for (auto& workload : served.workloads) workload.targets = {};
        auto options = options_;
        options.targets = {};
        if (const auto plan = plan_of(lax, options); plan.has_plan())
            found.push_back("targets: without them there is a plan for " + rounded_up(plan.cost) + " $/h");
        return found;
    }

    /// The GPUs of all types together, then the budget, too.
    [[nodiscard]] Answers by_limits_together() const {
        const auto rents = [](const ServingPlan& plan) {
            std::string text;
            for (const auto& rented : plan.rentals)
                text += (text.empty() ? "" : ", ") + std::to_string(rented.count + rented.spot) + " " +
                        rented.gpu;
            return text + " for " + rounded_up(plan.cost) + " $/h would do";
        };
        auto more = request_;
        more.available = plenty_.available;
        if (request_.gpus.size() > 1)
            if (const auto plan = plan_of(more, options_); plan.has_plan())
                return {"no single limit: GPUs of several types must be more; " + rents(plan)};
        if (!std::isfinite(request_.budget)) return {};
        if (!request_.has_rates()) return {"no single limit: budget and GPUs must both grow"};
        more.budget = plenty_.budget;
        auto options = options_;
        options.goal = Goal::cheapest;  // the most of everything has no end
        if (const auto plan = plan_of(more, options); plan.has_plan())
            return {"no single limit: budget and GPUs must both grow; " + rents(plan)};
        return {};
    }

    [[nodiscard]] ServingPlan plan_of(const ServingRequest& request, const PlannerOptions& options) const {
        const RentalInstance instance(request, options, instance_.solver(), instance_.context());
        return RatePlanner(instance).run();
    }

    /// $/h of the cheapest plan without a budget; for the highest rate, of the cheapest one that serves anything.
    [[nodiscard]] std::optional<double> least_budget() const {
        auto rich = request_;
        rich.budget = plenty_.budget;
        const RentalInstance instance(rich, options_, instance_.solver(), instance_.context());
        const auto plan = RatePlanner(instance).run();
        if (!plan.has_plan()) return std::nullopt;
        if (instance.wanted() == RentalGoal::cost) {
            // With the money of a plan there is that plan; the search is asked again, because it may go another way.
            for (const double more : {1.0, 1.1, 1.25, 1.5, 2.0}) {
                rich.budget = plan.cost * more * (1 + 1e-9);
                if (const auto again = plan_of(rich, options_); again.has_plan())
                    return rich.budget > request_.budget
                               ? std::optional(more == 1.0 ? plan.cost : rich.budget)
                               : std::nullopt;
            }
            return std::nullopt;
        }
        auto little = instance.problem(plan.capacity, plan.separate);
        for (auto& workload : little.workloads) workload.requests *= 1e-6 / instance.total();
        const auto least = instance.solve(little, RentalGoal::cost);
        return least.has_plan() ? std::optional(least.cost) : std::nullopt;
    }

    /// The fewest GPUs of a type at its usual price with which there is a plan, all else as it is.
    [[nodiscard]] std::optional<int> fewest_gpus(std::size_t g) const {
        auto changed = request_;
        changed.available[g] = plenty_.available[g];
        const RentalInstance instance(changed, options_, instance_.solver(), instance_.context());
        const auto plan = RatePlanner(instance).run();
        if (!plan.has_plan()) return std::nullopt;
        const int piece = instance.offers()[g].gpus;
        int low = request_.available[g] / piece, high = low + 1;
        for (const auto& rented : plan.rentals)
            if (rented.gpu == request_.gpus[g].name) high = std::max(high, rented.count / rented.per_rental);
        const auto enough = [&](int pieces) {
            changed.available[g] = pieces * piece;
            return plan_of(changed, options_).has_plan();
        };
        // Each number that is named was planned with.
        if (!enough(high)) return std::nullopt;
        while (high - low > 1) {
            const int middle = low + (high - low) / 2;
            (enough(middle) ? high : low) = middle;
        }
        return high * piece;
    }

    static constexpr int most_gpus = 1'000'000;
    const RentalInstance& instance_;
    const ServingRequest& request_;
    const PlannerOptions& options_;
    ServingRequest
        plenty_;  ///< the request without budget and with as many GPUs of every type as it could want
};

/// Runs a planner of an instance; where it is refused, `binding` says what would do.
inline ServingPlan run_explained(RatePlanner& planner, const RentalInstance& instance) {
    auto plan = planner.run();
    if (planner.refused()) plan.binding = WhyRefused(instance).answers();
    return plan;
}

/// Where a batch has no plan, and any GPUs may be rented and requests go anywhere, `binding` says what would do. Whether there is a
/// plan after all.
inline bool explain_batch(ServingPlan& plan, const ServingRequest& request, const PlannerOptions& options,
                          const milp::AnySolver& solver, const Context& context) {
    if (plan.status != milp::Status::infeasible || options.composition != Composition::optimized ||
        options.routing != Routing::optimized || options.uniform_tp)
        return false;
    const RentalInstance instance(request, options, solver, context);
    RatePlanner planner(instance);
    const bool found = planner.run().has_plan();
    if (planner.refused()) plan.binding = WhyRefused(instance).answers();
    return found;
}

}  // namespace gpusched::serving::detail
