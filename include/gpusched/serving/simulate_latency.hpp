// SPDX-License-Identifier: Apache-2.0
// How long requests take under a plan: a small queueing simulation.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/serving_plan.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// How requests arrive.
struct LatencyOptions {
    double rate =
        0;  ///< requests/s, a Poisson process, 1e-9 .. 1e12; 0 = those of the request, or all at once where it has none
    int requests = 10000;    ///< how many to simulate, 1 .. 10,000,000; of which kind follows the workloads
    std::uint64_t seed = 0;  ///< where random choices start
    double warm_up =
        0;  ///< latencies of requests that arrive in this first part of the time do not count, 0 .. 0.9
    EstimateOptions estimate{};  ///< of the times of a request alone, and of the room for KV cache
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
    std::string model{};         ///< the language model that they ask
    std::string workload{};      ///< the kind's name
    std::vector<double> ttft{};  ///< seconds from arrival to the first token, one per request
    std::vector<double>
        tpot{};  ///< mean seconds between the tokens of a request; none where it has one token
    std::vector<double> latency{};  ///< seconds from arrival to the last token, one per request
    /// @param percent 0 .. 100; the smallest value that so many per cent do not exceed
    /// @throws InvalidInput for other numbers; 0 where nothing was simulated
    [[nodiscard]] double ttft_percentile(double percent) const;
    /// Of the seconds per further token, likewise.
    [[nodiscard]] double tpot_percentile(double percent) const;
    /// Of the seconds from arrival to the last token, likewise.
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

/// What was simulated.
struct LatencyResult {
    std::vector<double> latency{};     ///< seconds from arrival to the last token, ascending, one per request
    double makespan = 0;               ///< seconds from the first arrival to the last token of all
    std::vector<KindLatency> kinds{};  ///< by kind of requests, in the order of the request
    /// @param percent 0 .. 100; the smallest latency that so many per cent of the requests do not exceed
    /// @throws InvalidInput for other numbers; 0 where nothing was simulated
    [[nodiscard]] double percentile(double percent) const;
};
template <class F>
constexpr void visit_fields(std::type_identity<LatencyResult>, F&& field) {
    field("latency", &LatencyResult::latency);
    field("makespan", &LatencyResult::makespan);
    field("kinds", &LatencyResult::kinds);
}

/// Simulates requests that arrive at a rate and go to replicas as the plan's shares say (each request for itself, at random;
/// replicas of a deployment in turn).
///
/// A replica works on one prompt at a time, first come, first served, while nobody decodes; otherwise the requests in flight take a
/// step together, which is the longer the more they are. Times are those of `estimate_throughput`, stretched so that a full replica
/// serves what the plan says (measured, say). At most as many run as KV cache and `max_batch` allow; others wait.
///
/// @param plan of this request, with one replica or more for each model that is asked for something
/// @throws InvalidInput for malformed input, and for plans that do not serve what is asked
/// @note deterministic
/// Complexity: O(n log n) for n requests.
[[nodiscard]] LatencyResult simulate_latency(const ServingRequest& request,
                                             const std::vector<PlannedReplicas>& plan,
                                             const LatencyOptions& options = {});

/// A table of percentiles by kind of requests, a line each.
[[nodiscard]] std::string latency_table(const LatencyResult& result);

}  // namespace gpusched::serving
