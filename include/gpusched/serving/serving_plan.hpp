// SPDX-License-Identifier: Apache-2.0
// ServingPlan: what is rented, which replicas run on it, where requests go, and what was proved about it.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/milp/solver.hpp>
#include <gpusched/serving/deployment.hpp>
#include <gpusched/serving/measurements.hpp>

#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// Replicas of one deployment.
struct PlannedReplicas {
    std::string model{};
    Deployment deployment{};
    int count = 0;
    double cost = 0;              ///< $/h of all of them
    std::vector<double> share{};  ///< of each workload of the model, what all of them serve together, 0 .. 1
    std::vector<double> requests_per_s{};  ///< of one of them, for each workload of the model
    std::vector<Source> source{};          ///< of these throughputs
    /// With targets: requests/s of one of them within the targets, each workload alone; and where the latencies come from that say
    /// so, `measured` where those of all its targets are.
    std::vector<double> within_targets{};
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
    std::string gpu{};
    int count = 0;       ///< GPUs at the usual price, in whole machines where those are rented
    int spot = 0;        ///< GPUs at the spot price
    int used = 0;        ///< of both, by replicas
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
/// They are simulated with the plan's own arrivals; of a kind so rare that no request of it was simulated, all are those of an
/// idle replica. TTFT or TPOT is `measured` where a target asks for it and all replicas of the kind, which serve nothing else,
/// have rows of it: percentiles with targets are the measured ones then, at the load of the busiest replicas, and the others are
/// unknown. Percentiles of one source never decrease from p50 to p99. TPOT of requests for one token is unknown.
struct PlannedLatency {
    std::string model{};
    std::string workload{};
    double rate = 0;  ///< requests/s
    std::optional<double> ttft_p50_s{}, ttft_p90_s{}, ttft_p99_s{}, tpot_p50_s{}, tpot_p90_s{}, tpot_p99_s{};
    Source ttft_source = Source::estimated;  ///< of the three percentiles of TTFT
    Source tpot_source = Source::estimated;  ///< of the three percentiles of TPOT
    bool met = true;                         ///< all targets are
    bool operator==(const PlannedLatency&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<PlannedLatency>, F&& field) {
    field("model", &PlannedLatency::model);
    field("workload", &PlannedLatency::workload);
    field("rate", &PlannedLatency::rate);
    field("ttft_p50_s", &PlannedLatency::ttft_p50_s, NullIfAbsent{});
    field("ttft_p90_s", &PlannedLatency::ttft_p90_s, NullIfAbsent{});
    field("ttft_p99_s", &PlannedLatency::ttft_p99_s, NullIfAbsent{});
    field("ttft_source", &PlannedLatency::ttft_source);
    field("tpot_p50_s", &PlannedLatency::tpot_p50_s, NullIfAbsent{});
    field("tpot_p90_s", &PlannedLatency::tpot_p90_s, NullIfAbsent{});
    field("tpot_p99_s", &PlannedLatency::tpot_p99_s, NullIfAbsent{});
    field("tpot_source", &PlannedLatency::tpot_source);
    field("met", &PlannedLatency::met);
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
    std::vector<RentedGpus> rentals{};  ///< types of which some are rented
    double rate = 0;  ///< requests/s that arrive, with rates; their `makespan` is the busiest replicas' load
    double cost_bound =
        0;  ///< with rates and goal `cheapest`: $/h that no plan of the deployments considered beats
    double rate_bound = 0;  ///< with rates and goal `most_rate`: requests/s that none of them exceeds
    double capacity =
        1;  ///< with targets: part of the replicas' throughput within targets that is used at most
    bool separate = false;                    ///< with targets: every replica serves one kind of requests
    std::vector<PlannedLatency> latencies{};  ///< with rates: of each kind of requests
    std::vector<std::string> binding{};       ///< where there is no plan: what would make one possible
    Calibration calibration{};                ///< where something was measured
    std::string solver{};
    /// Why it is not proved to be the best, and which measurements say less of their deployments than they could.
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
    field("solver", &ServingPlan::solver);
    field("message", &ServingPlan::message);
}

}  // namespace gpusched::serving
