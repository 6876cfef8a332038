// What to rent, how to deploy models on it, and where requests go.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/serving/estimate.hpp>
#include <gpusched/serving/solve_serving_plan.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// Requests of one shape to one model.
struct ServingWorkload {
    std::string name{};    ///< unique within the model
    RequestShape shape{};  ///< tokens in and out
    double requests = 0;   ///< how many, >= 0
    bool operator==(const ServingWorkload&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingWorkload>, F&& field) {
    field("name", &ServingWorkload::name);
    field("shape", &ServingWorkload::shape);
    field("requests", &ServingWorkload::requests);
}

/// A language model and its workloads.
struct ServedModel {
    LanguageModel model{};
    std::vector<ServingWorkload> workloads{};
    bool operator==(const ServedModel&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServedModel>, F&& field) {
    field("model", &ServedModel::model);
    field("workloads", &ServedModel::workloads);
}

/// A measured throughput, which goes before every estimate.
struct MeasuredThroughput {
    std::string model{};
    std::string deployment{};  ///< name as `enumerate_deployments` gives it, such as `H100 4x2`
    std::string workload{};
    double requests_per_s = 0;  ///< >= 0; 0 = cannot serve
    bool operator==(const MeasuredThroughput&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<MeasuredThroughput>, F&& field) {
    field("model", &MeasuredThroughput::model);
    field("deployment", &MeasuredThroughput::deployment);
    field("workload", &MeasuredThroughput::workload);
    field("requests_per_s", &MeasuredThroughput::requests_per_s);
}

/// What is to be planned.
struct ServingRequest {
    std::vector<GpuType> gpus{};   ///< each with a price
    std::vector<int> available{};  ///< of each type, >= 0
    double budget = 0;             ///< $/h, >= 0
    std::vector<ServedModel> models{};
    std::vector<MeasuredThroughput> measured{};
    bool operator==(const ServingRequest&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingRequest>, F&& field) {
    field("gpus", &ServingRequest::gpus);
    field("available", &ServingRequest::available);
    field("budget", &ServingRequest::budget);
    field("models", &ServingRequest::models);
    field("measured", &ServingRequest::measured);
}

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
    /// Of each model the solver sees this many deployments at most, those which for some kind of requests come nearest to the
    /// best throughput per $; 0 = all. What is left out is counted, and `bound` and `optimal` are about the rest.
    int max_deployments = 40;
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
    field("search", &PlannerOptions::search, Inlined{});
}

/// Replicas of one deployment.
struct PlannedReplicas {
    std::string model{};
    Deployment deployment{};
    int count = 0;
    double cost = 0;              ///< $/h of all of them
    std::vector<double> share{};  ///< of each workload of the model, what all of them serve together, 0 .. 1
    std::vector<double> requests_per_s{};  ///< of one of them, for each workload of the model
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
}

/// A plan, and what was proved about it.
struct ServingPlan {
    milp::Status status = milp::Status::failed;
    std::vector<PlannedReplicas> replicas{};  ///< empty where there is no plan, or nothing is asked
    std::vector<int> rented{};                ///< of each GPU type
    double cost = 0;                          ///< $/h
    double makespan = std::numeric_limits<double>::quiet_NaN();  ///< seconds; NaN where there is no plan
    double requests_per_s = 0;    ///< all requests over the makespan; 0 where there is no plan
    double cost_per_request = 0;  ///< $: the cost of the makespan over all requests; 0 where there is no plan
    double bound =
        0;  ///< seconds that no plan of the deployments considered beats; 0 where routing is round robin
    bool optimal = false;  ///< the makespan (with a deadline: the cost) was proved to be the best of them
    int deployments = 0;   ///< that are possible, over all models and problems solved
    int left_out = 0;      ///< of them, not considered because of `max_deployments`
    std::string solver{};
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
    field("solver", &ServingPlan::solver);
    field("message", &ServingPlan::message);
}

/// @throws InvalidInput with everything that is wrong
void validate(const ServingRequest& request);
void validate(const PlannerOptions& options);

/// The serving problem of a request: its deployments with their throughputs, measured or estimated.
struct ServingInstance {
    ServingProblem problem{};
    std::vector<Deployment> deployments{};  ///< one per configuration
    int left_out = 0;
};

/// Enumerates deployments of every model, estimates their throughputs, drops dominated ones and keeps the best.
/// @throws InvalidInput as `plan_serving`
[[nodiscard]] ServingInstance serving_instance(const ServingRequest& request,
                                               const PlannerOptions& options = {});

/// Which GPUs to rent, which replicas to run on them, and which share of each kind of requests to send to which, so that all
/// requests are done as early as possible within the budget; or, with a deadline, as cheaply as possible.
///
/// Source: arXiv 2502.00722, sections 4 and 5 (the ablations are options).
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
    double slack = 0.0;  ///< accept a makespan this part longer if that starts fewer replicas, 0 .. 10
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
    field("makespan_kept", &ReplanResult::makespan_kept);
    field("makespan_free", &ReplanResult::makespan_free);
}

/// The plan for changed requests, GPUs or budget that starts fewest replicas, of those that are within `slack` of the best.
/// Replicas for which the GPUs are gone, or that the budget no longer pays, are stopped; which ones, the solver decides.
///
/// Source: arXiv 2502.00722, App. M (replanning); the smallest change is ours. The problem gets two configurations per deployment:
/// running replicas come with a token of which there are as many as run, new ones with a token of which there are as many as may
/// be started; the smallest number of tokens is found by bisection.
/// @param running replicas of the plan before; deployments that are no longer possible are stopped
/// @throws InvalidInput with everything that is wrong; BackendError where the solver is missing
[[nodiscard]] ReplanResult replan(const ServingRequest& request, const std::vector<PlannedReplicas>& running,
                                  const ReplanOptions& options, const milp::AnySolver& solver,
                                  const Context& context = {});

}  // namespace gpusched::serving

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/serving/impl/plan_serving.ipp>
#include <gpusched/serving/impl/replan.ipp>
#endif
