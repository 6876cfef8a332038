// SPDX-License-Identifier: Apache-2.0
// Serving plans as their documents have them: GPU types and workloads by name.
#pragma once

#include <gpusched/json/forms.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>
#include <gpusched/serving/plan_json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::serving::detail {

inline constexpr std::string_view plan_format = "gpusched.serving-plan";
inline constexpr int newest_plan_version = 2;

struct StageDocument {
    std::string gpu{};
    int degree = 1;
    int layers = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<StageDocument>, F&& field) {
    field("gpu", &StageDocument::gpu, Required{});
    field("degree", &StageDocument::degree, Required{});
    field("layers", &StageDocument::layers, Required{});
}

/// What is read of replicas.
struct RunningDocument {
    std::string model{};
    int count = 0;
    std::vector<StageDocument> stages{};
};
template <class F>
constexpr void visit_fields(std::type_identity<RunningDocument>, F&& field) {
    field("model", &RunningDocument::model, Required{});
    field("count", &RunningDocument::count, Required{}, at_least(0));
    field("stages", &RunningDocument::stages, Required{});
}

/// What is read of a plan.
/// @tparam Replicas what is read of its replicas
template <class Replicas>
struct PartOfPlanDocument {
    std::vector<Replicas> replicas{};
};
template <class Replicas, class F>
constexpr void visit_fields(std::type_identity<PartOfPlanDocument<Replicas>>, F&& field) {
    field("replicas", &PartOfPlanDocument<Replicas>::replicas, Required{});
}

/// Throughputs within targets, of plans for rates.
struct WithinTargetsDocument {
    json::ByName<double> within_targets{};
    json::ByName<Source> latency_source{};
};
template <class F>
constexpr void visit_fields(std::type_identity<WithinTargetsDocument>, F&& field) {
    field("within_targets", &WithinTargetsDocument::within_targets);
    field("latency_source", &WithinTargetsDocument::latency_source);
}

/// Replicas of one deployment; what is said of each kind of requests stands by its name.
struct ReplicasDocument {
    std::string model{};
    std::string deployment{};
    int count = 0;
    double cost = 0;
    json::ByName<std::int64_t> gpus{};
    std::vector<StageDocument> stages{};
    json::ByName<double> share{};
    json::ByName<double> requests_per_s{};
    std::string means{};
    json::ByName<Source> source{};
    std::optional<WithinTargetsDocument> within{};
};
template <class F>
constexpr void visit_fields(std::type_identity<ReplicasDocument>, F&& field) {
    field("model", &ReplicasDocument::model);
    field("deployment", &ReplicasDocument::deployment);
    field("count", &ReplicasDocument::count);
    field("cost", &ReplicasDocument::cost);
    field("gpus", &ReplicasDocument::gpus);
    field("stages", &ReplicasDocument::stages);
    field("share", &ReplicasDocument::share);
    field("requests_per_s", &ReplicasDocument::requests_per_s);
    field("means", &ReplicasDocument::means);
    field("source", &ReplicasDocument::source);
    field("within", &ReplicasDocument::within, Inlined{});
}

/// What plans for rates say besides.
struct RatesDocument {
    double rate = 0;
    double cost_bound = 0;
    double rate_bound = 0;
    double capacity = 1;
    bool separate = false;
    std::vector<PlannedLatency> latencies{};
    std::vector<std::string> binding{};
    std::optional<std::vector<PriceRange>> price_ranges{};
};
template <class F>
constexpr void visit_fields(std::type_identity<RatesDocument>, F&& field) {
    field("rate", &RatesDocument::rate);
    field("cost_bound", &RatesDocument::cost_bound);
    field("rate_bound", &RatesDocument::rate_bound);
    field("capacity", &RatesDocument::capacity);
    field("separate", &RatesDocument::separate);
    field("latencies", &RatesDocument::latencies);
    field("binding", &RatesDocument::binding);
    field("price_ranges", &RatesDocument::price_ranges);
}

/// What a replanning changed.
struct ChangeDocument {
    int starts = 0;
    int stops = 0;
    double makespan_kept = 0;
    double makespan_free = 0;
    std::optional<double> cost_free{};  ///< of a plan for rates
};
template <class F>
constexpr void visit_fields(std::type_identity<ChangeDocument>, F&& field) {
    field("starts", &ChangeDocument::starts);
    field("stops", &ChangeDocument::stops);
    field("makespan_kept", &ChangeDocument::makespan_kept, NullIfUnknown{});
    field("makespan_free", &ChangeDocument::makespan_free, NullIfUnknown{});
    field("cost_free", &ChangeDocument::cost_free);
}

struct PlanDocument {
    milp::Status status = milp::Status::failed;
    double makespan = 0;
    double bound = 0;
    bool optimal = false;
    double requests_per_s = 0;
    double cost = 0;
    double cost_per_request = 0;
    json::ByName<int> rented{};
    std::vector<ReplicasDocument> replicas{};
    int deployments = 0;
    int left_out = 0;
    std::string solver{};
    std::string message{};
    std::vector<RentedGpus> rentals{};
    Calibration calibration{};
    std::optional<RatesDocument> rates{};
    std::optional<ChangeDocument> change{};
};
template <class F>
constexpr void visit_fields(std::type_identity<PlanDocument>, F&& field) {
    field("status", &PlanDocument::status);
    field("makespan", &PlanDocument::makespan, NullIfUnknown{});
    field("bound", &PlanDocument::bound, NullIfUnknown{});
    field("optimal", &PlanDocument::optimal);
    field("requests_per_s", &PlanDocument::requests_per_s);
    field("cost", &PlanDocument::cost);
    field("cost_per_request", &PlanDocument::cost_per_request);
    field("rented", &PlanDocument::rented);
    field("replicas", &PlanDocument::replicas);
    field("deployments", &PlanDocument::deployments);
    field("left_out", &PlanDocument::left_out);
    field("solver", &PlanDocument::solver);
    field("message", &PlanDocument::message);
    field("rentals", &PlanDocument::rentals);
    field("calibration", &PlanDocument::calibration);
    field("rates", &PlanDocument::rates, Inlined{});
    field("change", &PlanDocument::change, Inlined{});
}

/// A point of a curve.
struct PointDocument {
    double rate = 0;
    LatencyTargets targets{};
    PlanDocument plan{};
};
template <class F>
constexpr void visit_fields(std::type_identity<PointDocument>, F&& field) {
    field("rate", &PointDocument::rate);
    field("targets", &PointDocument::targets);
    field("plan", &PointDocument::plan);
}

struct CurveDocument {
    std::vector<PointDocument> points{};
};
template <class F>
constexpr void visit_fields(std::type_identity<CurveDocument>, F&& field) {
    field("points", &CurveDocument::points);
}

/// The plan for one budget.
struct BudgetDocument {
    double budget = 0;
    PlanDocument plan{};
};
template <class F>
constexpr void visit_fields(std::type_identity<BudgetDocument>, F&& field) {
    field("budget", &BudgetDocument::budget);
    field("plan", &BudgetDocument::plan);
}

struct SweepDocument {
    std::vector<BudgetDocument> plans{};
};
template <class F>
constexpr void visit_fields(std::type_identity<SweepDocument>, F&& field) {
    field("plans", &SweepDocument::plans);
}

}  // namespace gpusched::serving::detail
