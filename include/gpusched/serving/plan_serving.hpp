// SPDX-License-Identifier: Apache-2.0
// The serving planner: the plan, the options, planning, and replanning after a change.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/milp/solver.hpp>
#include <gpusched/serving/deployment.hpp>
#include <gpusched/serving/serving_request.hpp>
#include <gpusched/serving/solve_serving_plan.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// The factor that multiplies estimates of a model on a GPU type.
struct CalibrationFactor {
    std::string model{};  ///< name of the language model
    std::string gpu{};    ///< name of the GPU type
    double factor = 1;    ///< geometric mean of measured over estimated throughput
    int rows = 0;  ///< measured throughputs on this type alone; 0 = the factor comes from other measurements
    double spread = 0;  ///< standard deviation of the logarithm of the ratios; 0 for fewer than two rows
    bool operator==(const CalibrationFactor&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<CalibrationFactor>, F&& field) {
    field("model", &CalibrationFactor::model);
    field("gpu", &CalibrationFactor::gpu);
    field("factor", &CalibrationFactor::factor);
    field("rows", &CalibrationFactor::rows);
    field("spread", &CalibrationFactor::spread);
}

/// One measured throughput, compared with the values used without it.
struct MeasurementResidual {
    std::string model{};       ///< name of the language model
    std::string deployment{};  ///< name of the deployment
    std::string workload{};    ///< name of the workload
    double measured = 0;       ///< requests/s
    double estimated = 0;      ///< requests/s, without any measurement
    double calibrated = 0;     ///< requests/s, calibrated by all other deployments
    /// Seconds, measured at the load and estimated for an idle replica; 0 = not measured.
    double ttft_s = 0, ttft_idle_s = 0, tpot_s = 0, tpot_idle_s = 0;
    bool operator==(const MeasurementResidual&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<MeasurementResidual>, F&& field) {
    field("model", &MeasurementResidual::model);
    field("deployment", &MeasurementResidual::deployment);
    field("workload", &MeasurementResidual::workload);
    field("measured", &MeasurementResidual::measured);
    field("estimated", &MeasurementResidual::estimated);
    field("calibrated", &MeasurementResidual::calibrated);
    field("ttft_s", &MeasurementResidual::ttft_s);
    field("ttft_idle_s", &MeasurementResidual::ttft_idle_s);
    field("tpot_s", &MeasurementResidual::tpot_s);
    field("tpot_idle_s", &MeasurementResidual::tpot_idle_s);
}

/// The errors of the estimates, and the factors that correct them.
struct Calibration {
    std::vector<CalibrationFactor> factors{};      ///< one per model and GPU type
    std::vector<MeasurementResidual> residuals{};  ///< one per measured deployment and workload
    bool operator==(const Calibration&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Calibration>, F&& field) {
    field("factors", &Calibration::factors);
    field("residuals", &Calibration::residuals);
}

/// Replicas of one deployment. Lists have one entry per workload of the model.
struct PlannedReplicas {
    std::string model{};                   ///< name of the language model
    Deployment deployment{};               ///< the deployment of each replica
    int count = 0;                         ///< replicas
    double cost = 0;                       ///< $/h of all of them
    std::vector<double> share{};           ///< share of the requests that they serve together, 0 .. 1
    std::vector<double> requests_per_s{};  ///< throughput of one replica
    std::vector<Source> source{};          ///< source of these throughputs
    /// With targets: requests/s of one replica within them, this workload alone.
    std::vector<double> within_targets{};
    /// Source of those latencies; `measured` if measured for all targets.
    std::vector<Source> latency_source{};
    bool operator==(const PlannedReplicas&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<PlannedReplicas>, F&& field) {
    field("model", &PlannedReplicas::model);
    field("deployment", &PlannedReplicas::deployment);
    field("count", &PlannedReplicas::count);
    field("cost", &PlannedReplicas::cost);
    field("share", &PlannedReplicas::share);
    field("requests_per_s", &PlannedReplicas::requests_per_s);
    field("source", &PlannedReplicas::source);
    field("within_targets", &PlannedReplicas::within_targets);
    field("latency_source", &PlannedReplicas::latency_source);
}

/// GPUs of one type that a plan rents.
struct RentedGpus {
    std::string gpu{};   ///< name of the GPU type
    int count = 0;       ///< GPUs at the regular price; whole machines if machines are rented
    int spot = 0;        ///< GPUs at the spot price
    int used = 0;        ///< GPUs of both kinds that replicas use
    int per_rental = 1;  ///< GPUs that are rented together
    double cost = 0;     ///< $/h
    bool operator==(const RentedGpus&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<RentedGpus>, F&& field) {
    field("gpu", &RentedGpus::gpu);
    field("count", &RentedGpus::count);
    field("spot", &RentedGpus::spot);
    field("used", &RentedGpus::used);
    field("per_rental", &RentedGpus::per_rental);
    field("cost", &RentedGpus::cost);
}

/// Latencies of one kind of requests: percentiles in seconds, absent = unknown.
///
/// They are simulated with the arrivals of the plan. If a kind is so rare that none of its requests was
/// simulated, they are those of an idle replica; with more than 24 distinct lengths, `latency_*` are then
/// lower bounds. TTFT or TPOT is `measured` if it has a target and all replicas of the kind serve only this
/// kind and have measurements of it. Then percentiles with targets are measured, at the load of the busiest
/// replicas; the others are unknown. Percentiles of one source never decrease from p50 to p99. TPOT of
/// requests for one token is unknown. p95 and the latencies to the last token, which are always simulated,
/// are present if they have a target.
struct PlannedLatency {
    std::string model{};     ///< name of the language model
    std::string workload{};  ///< name of the workload
    double rate = 0;         ///< requests/s
    std::optional<double> ttft_p50_s{}, ttft_p90_s{}, ttft_p95_s{}, ttft_p99_s{}, tpot_p50_s{}, tpot_p90_s{},
        tpot_p95_s{}, tpot_p99_s{}, latency_p50_s{}, latency_p90_s{}, latency_p95_s{}, latency_p99_s{};
    Source ttft_source = Source::estimated;  ///< source of the percentiles of TTFT
    Source tpot_source = Source::estimated;  ///< source of the percentiles of TPOT
    bool met = true;                         ///< all targets are met
    bool operator==(const PlannedLatency&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<PlannedLatency>, F&& field) {
    field("model", &PlannedLatency::model);
    field("workload", &PlannedLatency::workload);
    field("rate", &PlannedLatency::rate);
    field("ttft_p50_s", &PlannedLatency::ttft_p50_s, NullIfAbsent{});
    field("ttft_p90_s", &PlannedLatency::ttft_p90_s, NullIfAbsent{});
    field("ttft_p95_s", &PlannedLatency::ttft_p95_s);
    field("ttft_p99_s", &PlannedLatency::ttft_p99_s, NullIfAbsent{});
    field("ttft_source", &PlannedLatency::ttft_source);
    field("tpot_p50_s", &PlannedLatency::tpot_p50_s, NullIfAbsent{});
    field("tpot_p90_s", &PlannedLatency::tpot_p90_s, NullIfAbsent{});
    field("tpot_p95_s", &PlannedLatency::tpot_p95_s);
    field("tpot_p99_s", &PlannedLatency::tpot_p99_s, NullIfAbsent{});
    field("tpot_source", &PlannedLatency::tpot_source);
    field("latency_p50_s", &PlannedLatency::latency_p50_s);
    field("latency_p90_s", &PlannedLatency::latency_p90_s);
    field("latency_p95_s", &PlannedLatency::latency_p95_s);
    field("latency_p99_s", &PlannedLatency::latency_p99_s);
    field("met", &PlannedLatency::met);
}

/// The errors of the estimates of a model on a GPU type of a plan: 80 % of comparable measurements were `low`
/// to `high` times the estimate.
struct PlanErrors {
    std::string model{};  ///< name of the language model
    std::string gpu{};    ///< name of the GPU type
    /// The comparable measurements, such as `dense hopper vllm`; `all` if none are closer.
    std::string cell{};
    int n = 0;                                               ///< number of these measurements
    double ttft_low = 0, ttft_high = 0;                      ///< time to the first token
    double tpot_low = 0, tpot_high = 0;                      ///< time per further token
    double requests_per_s_low = 0, requests_per_s_high = 0;  ///< requests per second
    std::string means{};                                     ///< the same as a sentence
    bool operator==(const PlanErrors&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<PlanErrors>, F&& field) {
    field("model", &PlanErrors::model);
    field("gpu", &PlanErrors::gpu);
    field("cell", &PlanErrors::cell);
    field("n", &PlanErrors::n);
    field("ttft_low", &PlanErrors::ttft_low);
    field("ttft_high", &PlanErrors::ttft_high);
    field("tpot_low", &PlanErrors::tpot_low);
    field("tpot_high", &PlanErrors::tpot_high);
    field("requests_per_s_low", &PlanErrors::requests_per_s_low);
    field("requests_per_s_high", &PlanErrors::requests_per_s_high);
    field("means", &PlanErrors::means);
}

/// A serving plan and its bounds. Bounds hold for all plans, also with deployments that were left out.
struct ServingPlan {
    /// How the search ended; `optimal` only if `optimal` is true, `feasible` if nothing stopped the search.
    milp::Status status = milp::Status::failed;
    std::vector<PlannedReplicas> replicas{};  ///< empty = no plan, or no requests
    std::vector<int> rented{};                ///< rented GPUs of each type
    double cost = 0;                          ///< $/h
    /// Seconds; with rates the load of the busiest replicas; NaN = no plan.
    double makespan = std::numeric_limits<double>::quiet_NaN();
    double requests_per_s = 0;    ///< all requests over the makespan; 0 = no plan
    double cost_per_request = 0;  ///< $ per request; 0 = no plan
    double bound = 0;             ///< seconds that no plan beats; 0 with routing round_robin
    bool optimal = false;         ///< the makespan (with a deadline or rates: the goal) is proved optimal
    int deployments = 0;          ///< possible deployments, over all models and problems solved
    int left_out = 0;             ///< deployments not considered because of `max_deployments`
    std::vector<RentedGpus> rentals{};  ///< rented GPUs by type; types without rented GPUs are omitted
    double rate = 0;                    ///< with rates: requests/s that arrive
    double cost_bound = 0;              ///< with rates and goal `cheapest`: $/h that no plan beats
    /// With rates and goal `most_rate`: requests/s that no plan exceeds; infinite if unknown.
    double rate_bound = 0;
    double capacity = 1;    ///< with targets: part of the capacity within targets that is used at most
    bool separate = false;  ///< with targets: every replica serves one kind of requests
    std::vector<PlannedLatency> latencies{};  ///< with rates: latencies of each kind of requests
    std::vector<std::string> binding{};       ///< without a plan: changes of limits that would allow one
    Calibration calibration{};                ///< calibration by the measurements, if there are any
    std::vector<PlanErrors> errors{};         ///< one per model and GPU type with estimated throughputs
    /// With rates, goal `cheapest`, no targets and the estimate error `none`: $/h of these deployments if
    /// each serves the low end of its requests/s. Otherwise absent: with `p90`, `cost` has this margin.
    std::optional<double> cost_high{};
    std::string solver{};  ///< name of the solver
    /// Why the plan is not proved optimal, and which measurements should be extended.
    std::string message{};
    [[nodiscard]] bool has_plan() const noexcept { return makespan == makespan; }
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingPlan>, F&& field) {
    field("status", &ServingPlan::status);
    field("replicas", &ServingPlan::replicas);
    field("rented", &ServingPlan::rented);
    field("cost", &ServingPlan::cost);
    field("makespan", &ServingPlan::makespan);
    field("requests_per_s", &ServingPlan::requests_per_s);
    field("cost_per_request", &ServingPlan::cost_per_request);
    field("bound", &ServingPlan::bound);
    field("optimal", &ServingPlan::optimal);
    field("deployments", &ServingPlan::deployments);
    field("left_out", &ServingPlan::left_out);
    field("rentals", &ServingPlan::rentals);
    field("rate", &ServingPlan::rate);
    field("cost_bound", &ServingPlan::cost_bound);
    field("rate_bound", &ServingPlan::rate_bound);
    field("capacity", &ServingPlan::capacity);
    field("separate", &ServingPlan::separate);
    field("latencies", &ServingPlan::latencies);
    field("binding", &ServingPlan::binding);
    field("calibration", &ServingPlan::calibration);
    field("errors", &ServingPlan::errors);
    field("cost_high", &ServingPlan::cost_high);
    field("solver", &ServingPlan::solver);
    field("message", &ServingPlan::message);
}

/// The GPUs that a plan can rent.
enum class Composition : std::uint8_t {
    optimized,    ///< any available GPUs
    homogeneous,  ///< one type, with unlimited availability (paper, App. K); the best such plan
    uniform,      ///< the same number of each type, as many as the budget pays, up to its availability
};

/// How requests are routed to replicas.
enum class Routing : std::uint8_t {
    optimized,    ///< shares that minimise the makespan
    round_robin,  ///< evenly to all replicas that can serve them
};

/// The objective of a plan for rates.
enum class Goal : std::uint8_t {
    cheapest,   ///< the cheapest rental that serves the rates within the targets
    most_rate,  ///< the highest multiple of the rates within the budget and the targets
};

/// How a serving plan is made.
struct PlannerOptions {
    DeploymentOptions deployments{};                   ///< the deployments to enumerate
    EstimateOptions estimate{};                        ///< how throughput is estimated
    Composition composition = Composition::optimized;  ///< the GPUs that a plan can rent
    Routing routing = Routing::optimized;              ///< how requests are routed to replicas
    /// Every replica is one tensor-parallel group, all of the same degree; the best of the allowed degrees.
    bool uniform_tp = false;
    /// Seconds, > 0: find the cheapest plan within them instead of the fastest. Not with `round_robin`.
    std::optional<double> deadline{};
    /// Most deployments of each model in the solver's problem, >= 0; 0 = all.
    ///
    /// Deployments are ranked by throughput per $. Sets of GPU types alternate: the i-th best of a set of t
    /// types has rank i t^2. Planning adds those that would be kept with fewer GPU types in a replica and, for
    /// a batch, those that the linear program over all deployments uses. `left_out` counts the others. Bounds
    /// hold for them, too.
    int max_deployments = 40;
    bool measured_only = false;  ///< use only measured deployments and workloads
    /// Allow pipelines without a measurement on GPU types without any measured pipeline of the model. They
    /// are excluded by default if the model was measured there otherwise or, with rates, fits into a
    /// tensor-parallel group of one machine.
    bool unmeasured_pipelines = false;
    bool machines = false;       ///< rent whole machines (`GpuType::per_machine` GPUs) instead of single GPUs
    Goal goal = Goal::cheapest;  ///< with rates: the objective
    LatencyTargets targets{};    ///< with rates: targets of all kinds; they replace the targets of a kind
    /// With rates: the utilization limit of a replica, as a part of its throughput, 0.01 .. 1.
    double utilization = 0.9;
    /// With targets: requests of a simulation, 100 .. 1,000,000. Raised to 20,000 if a workload has `lengths`,
    /// and up to 300,000 if fewer than 250 of a kind would count.
    int simulated_requests = 6000;
    /// How the serving problem is solved. At most three quarters of a time limit are spent on plans of smaller
    /// spaces.
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

/// @throws InvalidInput with every problem
void validate(const PlannerOptions& options);

/// Compares the measurements of a request with the estimates.
///
/// The factor of a model on a GPU type is the geometric mean of measured over estimated throughput, over
/// measured deployments of this type alone. Without such a deployment the model's other types count, else all
/// measurements; without any measurement the factor is 1. A deployment of several types has the smallest
/// factor of its types.
/// @throws InvalidInput as `plan_serving`
[[nodiscard]] Calibration calibrate(const ServingRequest& request, const EstimateOptions& options = {});

/// The serving problem of a request: its deployments with their throughputs, measured or estimated.
struct ServingInstance {
    ServingProblem problem{};
    std::vector<Deployment> deployments{};       ///< one per configuration
    int left_out = 0;                            ///< deployments omitted because of `max_deployments`
    std::vector<std::vector<Source>> sources{};  ///< [configuration][workload]: source of the throughput
};

/// Builds the serving problem of a request: enumerates deployments of every model, estimates their
/// throughputs, drops dominated ones and keeps the best.
/// @throws InvalidInput as `plan_serving`
[[nodiscard]] ServingInstance serving_instance(const ServingRequest& request,
                                               const PlannerOptions& options = {});

/// Plans which GPUs to rent, which replicas to run and how to route requests, so that all requests finish as
/// early as possible within the budget; with a deadline, at the lowest cost.
///
/// With rates, the plan is the cheapest rental that serves them within the targets, or serves the highest
/// multiple of them within the budget. A mixed-integer program finds the rental, with rates of replicas from
/// simulations or measured latencies. Then the complete plan is simulated with its own arrivals. If it misses
/// a target, replicas get less load or serve one kind of requests each. `cost_bound` is the bound of the
/// program, which ignores queueing.
///
/// Source: arXiv 2502.00722, sections 4 and 5 (the ablations are options); rates and targets are additions.
/// @throws InvalidInput with every problem; BackendError if the solver is missing
/// @note deterministic on one thread unless a time limit ends the search
[[nodiscard]] ServingPlan plan_serving(const ServingRequest& request, const PlannerOptions& options = {},
                                       const milp::AnySolver& solver = "auto", const Context& context = {});

/// How much a new plan can differ from the running one.
struct ReplanOptions {
    /// `composition` and `routing` must be optimized, without `uniform_tp` and deadline.
    PlannerOptions planner{};
    std::optional<int> max_starts{};  ///< most replicas to start, >= 0; not with rates
    /// Accept a makespan (with rates: a cost) that is larger by this part for fewer starts, 0 .. 10.
    double slack = 0.0;
};
template <class F>
constexpr void visit_fields(std::type_identity<ReplanOptions>, F&& field) {
    field("planner", &ReplanOptions::planner, Inlined{});
    field("max_starts", &ReplanOptions::max_starts, at_least(0));
    field("slack", &ReplanOptions::slack, within(0.0, 10.0));
}

/// A new plan and its changes.
struct ReplanResult {
    /// `bound` is the bound for `max_starts` starts. `optimal` means that the makespan is within the
    /// tolerance of it. If fewer starts make the makespan longer than that, `message` is "fewest starts
    /// within slack".
    ServingPlan plan{};
    int starts = 0;        ///< replicas to start
    int stops = 0;         ///< replicas to stop
    double cost_free = 0;  ///< with rates: $/h of the cheapest plan with any number of starts; 0 = no plan
    /// Seconds without a start; NaN = no such plan.
    double makespan_kept = std::numeric_limits<double>::quiet_NaN();
    /// Seconds with at most `max_starts` starts; NaN = no plan.
    double makespan_free = std::numeric_limits<double>::quiet_NaN();
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

/// Plans for changed requests, GPUs or budget: the plan within `slack` of the best that starts the fewest
/// replicas.
///
/// The solver decides which replicas stop if GPUs are gone or the budget is too small. The problem has two
/// configurations per deployment: each running replica needs a token of its deployment, each new replica a
/// token for starts. Bisection finds the smallest number of tokens for starts.
///
/// With rates, the cheapest plan is found first. Of the plans that cost at most `slack` more and meet the
/// targets, the one with the fewest starts is returned; `max_starts` is then an error.
///
/// Source: arXiv 2502.00722, App. M (replanning); the smallest change is an addition.
/// @param running replicas that run now; impossible deployments are stopped
/// @throws InvalidInput with every problem; BackendError if the solver is missing
[[nodiscard]] ReplanResult replan(const ServingRequest& request, const std::vector<PlannedReplicas>& running,
                                  const ReplanOptions& options, const milp::AnySolver& solver,
                                  const Context& context = {});

}  // namespace gpusched::serving
