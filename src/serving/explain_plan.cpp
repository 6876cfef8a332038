// SPDX-License-Identifier: Apache-2.0
// Explanations of plans: searches the limits that prevent a plan, and checks the loads of measured latencies.
#include "serving/calibrator.hpp"
#include "serving/instance.hpp"
#include "serving/rental_instance.hpp"

#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace gpusched::serving::detail {

/// A number as text with six digits, rounded up, so that a limit of this size suffices.
static std::string rounded_up(double value) {
    if (!(value > 0)) return number_text(value);
    const double unit = std::pow(10.0, std::floor(std::log10(value)) - 5);
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.6g", std::ceil(value / unit - 1e-6) * unit);
    return text.data();
}

/// The limits that prevent a plan: changes one limit after another, plans again, and finds the smallest
/// sufficient change.
class BindingLimits {
  public:
    using Answers = std::vector<std::string>;

    /// @param instance  an instance without a plan; must outlive this object
    explicit BindingLimits(const RentalInstance& instance)
        : instance_(instance), request_(instance.request()), options_(instance.options()), plenty_(request_) {
        for (auto& count : plenty_.available) count = std::max(count, most_gpus);
        plenty_.budget = std::numeric_limits<double>::infinity();
    }

    [[nodiscard]] Answers find() const {
        auto found = by_kind();
        if (found.empty()) found = by_limit();
        if (const auto answer = by_region()) found.push_back(*answer);
        if (found.empty()) found = by_limits_together();
        if (found.empty() && instance_.stopped())
            found.emplace_back("the search for the limits that prevent a plan was ended early");
        if (found.empty())
            found.emplace_back("no plan was found with more GPUs, more budget or without targets, either");
        return found;
    }

    /// Kinds of requests that no deployment serves within their targets, whatever the number of replicas.
    [[nodiscard]] Answers by_kind() const {
        Answers found;
        const auto all = all_deployments(plenty_, options_, [&] { return instance_.stopped().has_value(); });
        if (instance_.stopped()) return found;
        for (std::size_t w = 0; w < instance_.kinds().size(); ++w) {
            const auto& kind = instance_.kinds()[w];
            if (all.problem.workloads[w].requests <= 0) continue;
            const auto owner = "workload " + gpusched::quoted(all.problem.workloads[w].name) + " of " +
                               gpusched::quoted(request_.models[kind.model].model.name);
            std::vector<Quickest> quickest(kind.targets.size());
            bool possible = false, measured_none = false, keeps_all = false, reported = false;
            for (std::size_t c = 0; c < all.deployments.size(); ++c) {
                if (all.problem.configurations[c].model != all.problem.workloads[w].model) continue;
                const auto rows = instance_.measured_rows(all, c, w);
                if (all.problem.configurations[c].throughput[w] <= 0) {
                    measured_none = measured_none || !rows.empty();
                    continue;
                }
                possible = true;
                const auto t = instance_.times(all, c, w);
                const auto idle = [&](const LatencyPercentile& percentile) { return t.idle(percentile); };
                for (std::size_t i = 0; i < quickest.size(); ++i)
                    quickest[i].consider(rows, kind.targets[i].time, idle(kind.targets[i]),
                                         all.deployments[c].name);
                keeps_all = keeps_all || can_keep(rows, idle, kind.targets);
            }
            if (!possible) {
                const std::string cannot = "no deployment of these GPU types ";
                const auto& workload = request_.models[kind.model].workloads[kind.workload];
                const auto longest = RequestMix(workload).longest();
                const std::string held = workload.lengths.empty()
                                             ? "can hold one of its requests"
                                             : "can hold its longest request (" + number_text(longest.input) +
                                                   " tokens in, " + number_text(longest.output) + " out)";
                found.push_back(owner + ": " +
                                (measured_none && options_.measured_only
                                     ? "every measurement of it says that 0 requests/s are served"
                                 : measured_none ? cannot + held + " and was not measured at 0 requests/s"
                                 : options_.measured_only ? cannot + "was measured for it"
                                                          : cannot + held));
                continue;
            }
            if (keeps_all) continue;
            for (std::size_t i = 0; i < quickest.size(); ++i) {
                const auto& target = kind.targets[i];
                if (quickest[i].seconds <= target.seconds) continue;
                reported = true;
                found.push_back(owner + ": " + target.name + " of " + number_text(target.seconds) +
                                " s is less than " + rounded_up(quickest[i].seconds) + " s, " +
                                quickest[i].what);
            }
            if (!reported)
                found.push_back(
                    owner +
                    ": no deployment keeps all of its targets at once, even idle or at its lowest measured "
                    "load");
        }
        return found;
    }

  private:
    /// The smallest latency of all deployments, measured at the lowest load or else estimated for an idle
    /// replica.
    struct Quickest {
        double seconds = std::numeric_limits<double>::infinity();
        std::string what{};
        void consider(const std::vector<MeasuredThroughput>& rows, TokenTime time, double idle,
                      const std::string& deployment) {
            const auto known = rows_with(rows, time);
            const double value = known.empty() ? idle : *latency_of(known.front(), time);
            if (value >= seconds) return;
            seconds = value;
            what = known.empty() ? "what the quickest idle deployment (" + deployment +
                                       (time == TokenTime::last ? ") takes at least" : ") takes")
                                 : "the least that was measured (" + deployment + " at " +
                                       number_text(known.front().requests_per_s) + " requests/s)";
        }
    };

    /// Replicas in several regions.
    [[nodiscard]] std::optional<std::string> by_region() const {
        const auto& gpus = request_.gpus;
        if (options_.deployments.across_regions ||
            std::all_of(gpus.begin(), gpus.end(),
                        [&](const GpuType& gpu) { return gpu.region == gpus.front().region; }))
            return std::nullopt;
        auto options = options_;
        options.deployments.across_regions = true;
        const auto plan = plan_of(request_, options);
        if (!plan.has_plan()) return std::nullopt;
        return "across_regions: with replicas in several regions there is a plan for " +
               rounded_up(plan.cost) + " $/h";
    }

    /// The budget, the GPUs of one type, the deadline, unmeasured pipelines, the targets: each alone.
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
                                rounded_up(plan.cost) + " $/h, by estimates without measurements");
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

    /// The GPUs of all types together, then also the budget.
    [[nodiscard]] Answers by_limits_together() const {
        if (instance_.stopped()) return {};
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
        options.goal = Goal::cheapest;  // without limits the highest rate is infinite
        if (const auto plan = plan_of(more, options); plan.has_plan())
            return {"no single limit: budget and GPUs must both grow; " + rents(plan)};
        return {};
    }

    [[nodiscard]] ServingPlan plan_of(const ServingRequest& request, const PlannerOptions& options) const {
        if (instance_.stopped()) return {};
        const auto rest = in_remaining_time(options);
        return plan_rental(RentalInstance(request, rest, instance_.solver(), instance_.context())).plan;
    }
    [[nodiscard]] PlannerOptions in_remaining_time(PlannerOptions options) const {
        options.search.solve.time_limit = instance_.remaining_s();
        return options;
    }

    /// $/h of the cheapest plan without a budget; for goal `most_rate`, of the cheapest plan that serves
    /// anything.
    [[nodiscard]] std::optional<double> least_budget() const {
        auto rich = request_;
        rich.budget = plenty_.budget;
        const auto rest = in_remaining_time(options_);
        const RentalInstance instance(rich, rest, instance_.solver(), instance_.context());
        const auto plan = plan_rental(instance).plan;
        if (!plan.has_plan()) return std::nullopt;
        if (instance.goal() == RentalGoal::cost) {
            // That plan fits into its own cost, but a search with this budget can take another path; so it is
            // run.
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

    /// The fewest GPUs of a type at its regular price that allow a plan.
    [[nodiscard]] std::optional<int> fewest_gpus(std::size_t g) const {
        auto changed = request_;
        changed.available[g] = plenty_.available[g];
        const auto rest = in_remaining_time(options_);
        const RentalInstance instance(changed, rest, instance_.solver(), instance_.context());
        const auto plan = plan_rental(instance).plan;
        if (!plan.has_plan()) return std::nullopt;
        const int piece = instance.offers()[g].gpus;
        int low = request_.available[g] / piece, high = low + 1;
        for (const auto& rented : plan.rentals)
            if (rented.gpu == request_.gpus[g].name) high = std::max(high, rented.count / rented.per_rental);
        const auto enough = [&](int pieces) {
            changed.available[g] = pieces * piece;
            return plan_of(changed, options_).has_plan();
        };
        // A plan was made with every number that is reported.
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
    ServingRequest plenty_;  ///< the request without a budget limit and with `most_gpus` GPUs of every type
};

RentalOutcome plan_rental_explained(const RentalInstance& instance, double slack,
                                    const std::vector<PlannedReplicas>& running) {
    auto outcome = plan_rental(instance, slack);
    if (outcome.refused && instance.considered().left_out > 0) {
        auto options = instance.options();
        options.max_deployments = 0;
        options.search.solve.time_limit = instance.remaining_s();
        const RentalInstance all(instance.request(), options, instance.solver(), instance.context(), running);
        outcome = plan_rental(all, slack);
    }
    if (!outcome.refused) return outcome;
    const BindingLimits limits(instance);
    try {
        outcome.plan.binding = limits.find();
    } catch (const InvalidInput& error) {  // with more GPUs, there are too many deployments
        outcome.plan.binding = {error.what()};
        return outcome;
    }
    if (outcome.plan.status != milp::Status::infeasible || !instance.any_targets() ||
        limits.by_kind().empty())
        return outcome;
    // Is every kind served at the other end of the error bands?
    auto options = instance.options();
    options.estimate.error = EstimateError::p10;
    options.search.solve.time_limit = instance.remaining_s();
    const RentalInstance low(instance.request(), options, instance.solver(), instance.context());
    if (BindingLimits(low).by_kind().empty()) {
        outcome.plan.status = milp::Status::failed;
        outcome.plan.message =
            "the targets are met only with shorter times within the error bands of the estimates (error p10)";
    }
    return outcome;
}

bool explain_batch(ServingPlan& plan, const ServingRequest& request, const PlannerOptions& options,
                   const milp::AnySolver& solver, const Context& context) {
    if (plan.status != milp::Status::infeasible || is_restricted(options)) return false;
    const auto outcome = plan_rental_explained(RentalInstance(request, options, solver, context));
    if (outcome.refused) plan.binding = outcome.plan.binding;
    return outcome.plan.has_plan();
}

void add_errors(ServingPlan& plan, const ServingRequest& request, const EstimateOptions& options) {
    plan.errors.clear();
    const auto estimators = estimators_of(request, options);
    for (std::size_t i = 0; i < request.models.size(); ++i)
        for (std::size_t g = 0; g < request.gpus.size(); ++g) {
            const auto& model = request.models[i].model.name;
            const auto estimated = [&](const PlannedReplicas& r) {
                if (r.model != model) return false;
                bool uses = false, any = false;
                for (const auto& stage : r.deployment.stages) uses = uses || stage.gpu == static_cast<int>(g);
                for (std::size_t d = 0; d < r.share.size(); ++d)
                    any = any || (r.share[d] > 0 && r.source[d] != Source::measured);
                return uses && any;
            };
            if (std::none_of(plan.replicas.begin(), plan.replicas.end(), estimated)) continue;
            const auto& [ttft, tpot, rate] = estimators[i].errors(g);
            const auto words = [](const ErrorBand& band) {
                return number_text(std::round(band.low * 100) / 100) + " to " +
                       number_text(std::round(band.high * 100) / 100);
            };
            plan.errors.push_back({model, request.gpus[g].name, tpot.cell, tpot.n, ttft.low, ttft.high,
                                   tpot.low, tpot.high, rate.low, rate.high,
                                   "token time " + words(tpot) + " times, first token " + words(ttft) +
                                       " times the estimate in 80 % of " + number_text(tpot.n) +
                                       " comparable measurements (" + tpot.cell + ")"});
        }
}

void add_hints(ServingPlan& plan, const ServingRequest& request, const PlannerOptions& options) {
    const auto add = [&](const std::string& sentence) {
        plan.message += (plan.message.empty() ? "" : "; ") + sentence;
    };
    for (const auto& served : request.models)
        for (const auto& workload : served.workloads)
            if (workload.left_out > 0)
                add("requests left out of the trace of " + gpusched::quoted(workload.name) + " of " +
                    gpusched::quoted(served.model.name) +
                    " (failed, or without a prompt or an answer): " + number_text(workload.left_out));
    const Calibrator calibrator(request, options.estimate);
    const auto idle_times = [&](const Calibrator::Row& row) {
        return calibrator.mix(row.model, row.workload)
            .estimate(calibrator.estimator(row.model), row.deployment, 1);
    };
    for (const auto& row : calibrator.rows()) {
        const auto& served = request.models[row.model];
        const auto& kind = served.workloads[row.workload];
        const auto name = gpusched::quoted(row.deployment.name);
        const auto of_kind =
            " requests/s of " + gpusched::quoted(kind.name) + " of " + gpusched::quoted(served.model.name);
        if ((row.ttft_s || row.tpot_s) && row.measured <= 0.5 * row.estimate.requests_per_s) {
            add(name + " counts as serving at most " + number_text(row.measured) + of_kind +
                ", the highest load of its rows, where " + number_text(row.estimate.requests_per_s) +
                " are estimated: give what it serves when saturated, and latencies at higher loads");
            continue;
        }
        std::vector<MeasuredThroughput> rows;
        for (const auto& m : request.measured)
            if (m.model == served.model.name && m.deployment == row.deployment.name &&
                m.workload == kind.name)
                rows.push_back(m);
        for (const auto& target : list_of(merged(kind.targets, options.targets))) {
            const auto known = rows_with(rows, target.time);
            if (known.empty()) continue;
            const double idle =
                target.time == TokenTime::first ? idle_times(row).first_token_s : idle_times(row).step_s;
            const auto least = known.front().requests_per_s, most = known.back().requests_per_s;
            if (*latency_of(known.front(), target.time) > target.seconds && idle <= target.seconds)
                add(name + " counts as missing " + target.name + " at any load, because it misses it at " +
                    number_text(least) + of_kind +
                    ", the lowest load of its rows: give latencies at lower loads");
            else if (*latency_of(known.back(), target.time) <= target.seconds && most <= 0.5 * row.measured)
                add(name + " counts as keeping " + target.name + " up to " + number_text(most) + of_kind +
                    ", the highest load of its rows with this latency, where it serves " +
                    number_text(row.measured) + ": give latencies at higher loads");
        }
    }
}

}  // namespace gpusched::serving::detail
