// SPDX-License-Identifier: Apache-2.0
// What to rent, how to deploy models on it, and where requests go: the planner.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/serving_plan.hpp>
#include <gpusched/serving/serving_request.hpp>
#include <gpusched/serving/solve_serving_plan.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// Which GPUs may be rented.
enum class Composition : std::uint8_t {
    optimized,  ///< any
    homogeneous,  ///< one type, of which there are as many as the budget pays (paper, App. K); the best such plan
    uniform,      ///< as many of each type as the budget pays, or as there are
};
constexpr auto enum_names(Composition) {
    return name_table<Composition>({
        {Composition::optimized, "optimized"},
        {Composition::homogeneous, "homogeneous"},
        {Composition::uniform, "uniform"},
    });
}

/// Where requests go.
enum class Routing : std::uint8_t {
    optimized,    ///< where it shortens the makespan most
    round_robin,  ///< to the replicas that can serve them in turn, whatever they are
};
constexpr auto enum_names(Routing) {
    return name_table<Routing>({
        {Routing::optimized, "optimized"},
        {Routing::round_robin, "round_robin"},
    });
}

/// What a plan for rates is best at.
enum class Goal : std::uint8_t {
    cheapest,   ///< the cheapest rental that serves the rates within the targets
    most_rate,  ///< the highest multiple of the rates within the budget and the targets
};
constexpr auto enum_names(Goal) {
    return name_table<Goal>({
        {Goal::cheapest, "cheapest"},
        {Goal::most_rate, "most_rate"},
    });
}

/// How a serving plan is made.
struct PlannerOptions {
    DeploymentOptions deployments{};                   ///< which deployments are looked for
    EstimateOptions estimate{};                        ///< how throughput is estimated
    Composition composition = Composition::optimized;  ///< which GPUs may be rented
    Routing routing = Routing::optimized;              ///< where requests go
    /// All replicas are one tensor-parallel group of the same degree; of the degrees allowed, the best.
    bool uniform_tp = false;
    /// Seconds, > 0: find the cheapest plan within them instead of the fastest. Not with `round_robin`.
    std::optional<double> deadline{};
    /// Of each model the solver sees this many deployments at most, by turns the best per $ of every set of GPU types for every kind of
    /// requests: the i-th of a set of t types comes at turn i t^2. 0 = all. What is left out is counted, and `bound` and `optimal`
    /// are about the rest.
    int max_deployments = 40;
    bool measured_only = false;  ///< plan with deployments and workloads that were measured, and nothing else
    /// Consider pipelines on GPU types where no pipeline of their model was measured although it was measured otherwise or, with
    /// rates, a tensor-parallel group of one machine holds it.
    bool unmeasured_pipelines = false;
    bool machines = false;  ///< rent whole machines (`GpuType::per_machine` GPUs); off = any number of GPUs
    Goal goal = Goal::cheapest;  ///< of requests with rates
    LatencyTargets targets{};    ///< of requests with rates: for all kinds, before the targets of their own
    /// Requests with rates: part of its throughput that a replica may be asked for at most, 0.01 .. 1.
    double utilization = 0.9;
    /// Requests with targets: how many a simulation has, 100 .. 1,000,000; more, up to 300,000, where a kind is so rare that
    /// fewer than 250 of it would count.
    int simulated_requests = 6000;
    /// How the serving problem is solved. With a time limit, half of it at most goes into plans of one GPU type first.
    ServingSearchOptions search{.tolerance = 1e-3};
};
template <class F>
constexpr void visit_fields(std::type_identity<PlannerOptions>, F&& field) {
    field("deployments", &PlannerOptions::deployments);
    field("estimate", &PlannerOptions::estimate);
    field("composition", &PlannerOptions::composition);
    field("routing", &PlannerOptions::routing);
    field("uniform_tp", &PlannerOptions::uniform_tp);
    field("deadline", &PlannerOptions::deadline);
    field("max_deployments", &PlannerOptions::max_deployments, at_least(0));
    field("measured_only", &PlannerOptions::measured_only);
    field("unmeasured_pipelines", &PlannerOptions::unmeasured_pipelines);
    field("machines", &PlannerOptions::machines);
    field("goal", &PlannerOptions::goal);
    field("targets", &PlannerOptions::targets, Inlined{});
    field("utilization", &PlannerOptions::utilization, within(0.01, 1.0));
    field("simulated_requests", &PlannerOptions::simulated_requests, within(100, 1'000'000));
    field("search", &PlannerOptions::search, Inlined{});
}

/// @throws InvalidInput with everything that is wrong
void validate(const PlannerOptions& options);

/// Compares the measurements of a request with the estimates.
///
/// The factor of a model on a GPU type is the geometric mean of measured over estimated throughput, over the measured
/// deployments of this type alone. Where there are none, it is borrowed: from the model's other types, else from all
/// measurements, else it is 1. A deployment of several types takes the smallest factor of its types.
/// @throws InvalidInput as `plan_serving`
[[nodiscard]] Calibration calibrate(const ServingRequest& request, const EstimateOptions& options = {});

/// The serving problem of a request: its deployments with their throughputs, measured or estimated.
struct ServingInstance {
    ServingProblem problem{};
    std::vector<Deployment> deployments{};  ///< one per configuration
    int left_out = 0;
    std::vector<std::vector<Source>> sources{};  ///< [configuration][workload]: of the throughputs
};

/// Enumerates deployments of every model, estimates their throughputs, drops dominated ones and keeps the best.
/// @throws InvalidInput as `plan_serving`
[[nodiscard]] ServingInstance serving_instance(const ServingRequest& request,
                                               const PlannerOptions& options = {});

/// Which GPUs to rent, which replicas to run on them, and which share of each kind of requests to send to which, so that all
/// requests are done as early as possible within the budget; or, with a deadline, as cheaply as possible.
///
/// With rates: the cheapest rental that serves them within the targets, or the highest multiple of them within the budget.
/// What a replica serves within the targets is found by simulating it alone (or read from measured latencies), the rental by a
/// mixed-integer program, and the whole plan is simulated with its own arrivals; where that misses a target, replicas are
/// filled less (`capacity`, by bisection) or serve one kind of requests each, and of the plans that keep the targets the cheapest
/// counts. `cost_bound` is the program's, without regard to queueing.
///
/// Source: arXiv 2502.00722, sections 4 and 5 (the ablations are options); rates and targets are ours.
/// @throws InvalidInput with everything that is wrong; BackendError where the solver is missing
/// @note deterministic on one thread unless a time limit strikes
[[nodiscard]] ServingPlan plan_serving(const ServingRequest& request, const PlannerOptions& options,
                                       const milp::AnySolver& solver, const Context& context = {});
[[nodiscard]] ServingPlan plan_serving(const ServingRequest& request, const PlannerOptions& options = {},
                                       const std::string& solver = "auto", const Context& context = {});

/// How much a new plan may differ from one that runs.
struct ReplanOptions {
    PlannerOptions
        planner{};  ///< `composition` and `routing` are optimized, without `uniform_tp` and deadline
    std::optional<int> max_starts{};  ///< replicas to start at most, >= 0
    double slack =
        0.0;  ///< accept a makespan (with rates: a cost) this part longer if that starts fewer replicas, 0 .. 10
};
template <class F>
constexpr void visit_fields(std::type_identity<ReplanOptions>, F&& field) {
    field("planner", &ReplanOptions::planner, Inlined{});
    field("max_starts", &ReplanOptions::max_starts, at_least(0));
    field("slack", &ReplanOptions::slack, within(0.0, 10.0));
}

/// A new plan and what it changes.
struct ReplanResult {
    /// `bound` is that of the best plan with as many starts as allowed, and `optimal` says that the makespan is within the
    /// tolerance of it; where fewer starts make it longer than that, `message` is "fewest starts within slack".
    ServingPlan plan{};
    int starts = 0;  ///< replicas that did not run before
    int stops = 0;   ///< replicas that ran before and no longer do
    /// With rates: $/h of the cheapest plan, however many replicas it starts; 0 where there is none.
    double cost_free = 0;
    double makespan_kept =
        std::numeric_limits<double>::quiet_NaN();  ///< seconds, starting none; NaN where that serves not all
    double makespan_free =
        std::numeric_limits<double>::quiet_NaN();  ///< seconds, starting as many as `max_starts` allows
};
template <class F>
constexpr void visit_fields(std::type_identity<ReplanResult>, F&& field) {
    field("plan", &ReplanResult::plan);
    field("starts", &ReplanResult::starts);
    field("stops", &ReplanResult::stops);
    field("cost_free", &ReplanResult::cost_free);
    field("makespan_kept", &ReplanResult::makespan_kept);
    field("makespan_free", &ReplanResult::makespan_free);
}

/// The plan for changed requests, GPUs or budget that starts fewest replicas, of those that are within `slack` of the best.
/// Replicas for which the GPUs are gone, or that the budget no longer pays, are stopped; which ones, the solver decides.
///
/// Source: arXiv 2502.00722, App. M (replanning); the smallest change is ours. The problem gets two configurations per deployment:
/// running replicas come with a token of which there are as many as run, new ones with a token of which there are as many as may
/// be started; the smallest number of tokens is found by bisection.
/// With rates, the cheapest plan for them is found first, and of the plans that cost at most `slack` more and keep the targets
/// the one that starts fewest replicas; `max_starts` is an error there.
/// @param running replicas of the plan before; deployments that are no longer possible are stopped
/// @throws InvalidInput with everything that is wrong; BackendError where the solver is missing
[[nodiscard]] ReplanResult replan(const ServingRequest& request, const std::vector<PlannedReplicas>& running,
                                  const ReplanOptions& options, const milp::AnySolver& solver,
                                  const Context& context = {});

}  // namespace gpusched::serving
