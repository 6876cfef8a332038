// SPDX-License-Identifier: Apache-2.0
// Latencies of requests under a plan, by a queueing simulation.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/plan_serving.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// How requests arrive.
struct LatencyOptions {
    /// Requests/s of a Poisson process, 1e-9 .. 1e12; 0 = rates of the request, or all at once if it has
    /// none.
    double rate = 0;
    int requests = 10000;    ///< requests to simulate, 1 .. 10,000,000, in the proportions of the workloads
    std::uint64_t seed = 0;  ///< seed of the random numbers
    double warm_up = 0;      ///< ignore requests that arrive in this first part of the time, 0 .. 0.9
    EstimateOptions estimate{};  ///< how times and KV cache are estimated
};
template <class F>
constexpr void visit_fields(std::type_identity<LatencyOptions>, F&& field) {
    field("rate", &LatencyOptions::rate);
    field("requests", &LatencyOptions::requests, within(1, 10'000'000));
    field("seed", &LatencyOptions::seed);
    field("warm_up", &LatencyOptions::warm_up, within(0.0, 0.9));
    field("estimate", &LatencyOptions::estimate);
}

/// Latencies of one kind of requests, each list ascending.
struct KindLatency {
    std::string model{};            ///< name of the language model
    std::string workload{};         ///< name of the workload
    std::vector<double> ttft{};     ///< seconds from arrival to the first token, one per request
    std::vector<double> tpot{};     ///< mean seconds between tokens, one per request with several tokens
    std::vector<double> latency{};  ///< seconds from arrival to the last token, one per request
    /// Returns a percentile of `ttft`: the smallest value that `percent` of the requests do not exceed; 0
    /// without requests.
    /// @param percent 0 .. 100
    /// @throws InvalidInput for other numbers
    [[nodiscard]] double ttft_percentile(double percent) const;
    /// Returns a percentile of `tpot`, likewise.
    [[nodiscard]] double tpot_percentile(double percent) const;
    /// Returns a percentile of `latency`, likewise.
    [[nodiscard]] double percentile(double percent) const;
};
template <class F>
constexpr void visit_fields(std::type_identity<KindLatency>, F&& field) {
    field("model", &KindLatency::model);
    field("workload", &KindLatency::workload);
    field("ttft", &KindLatency::ttft);
    field("tpot", &KindLatency::tpot);
    field("latency", &KindLatency::latency);
}

/// The result of a simulation.
struct LatencyResult {
    std::vector<double> latency{};     ///< seconds from arrival to the last token, ascending, one per request
    double makespan = 0;               ///< seconds from the first arrival to the last token of all requests
    std::vector<KindLatency> kinds{};  ///< by kind of requests, in the order of the request
    /// Returns a percentile of `latency`: the smallest value that `percent` of the requests do not exceed; 0
    /// without requests.
    /// @param percent 0 .. 100
    /// @throws InvalidInput for other numbers
    [[nodiscard]] double percentile(double percent) const;
};
template <class F>
constexpr void visit_fields(std::type_identity<LatencyResult>, F&& field) {
    field("latency", &LatencyResult::latency);
    field("makespan", &LatencyResult::makespan);
    field("kinds", &LatencyResult::kinds);
}

/// Simulates requests that arrive at a rate and are routed by the shares of a plan.
///
/// The deployment of each request is random; replicas of a deployment take turns. A replica works on one
/// prompt at a time, first come, first served, while decoding pauses. Otherwise the requests in flight take a
/// step together, which takes longer the more they are. Times are those of `estimate_throughput`, scaled so
/// that a full replica reaches the throughput in the plan, which can be measured. KV cache and `max_batch`
/// limit the requests in flight; others wait.
///
/// @param plan replicas of this request, at least one for each model with requests
/// @throws InvalidInput for malformed input, and for plans that do not serve all requests
/// @note deterministic Complexity: O(n log n) for n requests.
[[nodiscard]] LatencyResult simulate_latency(const ServingRequest& request,
                                             const std::vector<PlannedReplicas>& plan,
                                             const LatencyOptions& options = {});

/// Returns a table of percentiles as text, one line per kind of requests.
[[nodiscard]] std::string latency_table(const LatencyResult& result);

}  // namespace gpusched::serving
