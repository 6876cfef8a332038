// How long requests take under a plan: a small queueing simulation.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/serving/plan_serving.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// How requests arrive.
struct LatencyOptions {
    double rate =
        0;  ///< requests/s, a Poisson process, 1e-9 .. 1e12; 0 = all at once, as the makespan counts
    int requests = 10000;    ///< how many to simulate, 1 .. 10,000,000; of which kind follows the workloads
    std::uint64_t seed = 0;  ///< where random choices start
    EstimateOptions estimate{};  ///< of the times of a request alone; its `memory_fraction` is the one below
    double memory_fraction = 0.9;  ///< as in `DeploymentOptions`
};
template <class F>
constexpr void visit_fields(std::type_identity<LatencyOptions>, F&& field) {
    field("rate", &LatencyOptions::rate);
    field("requests", &LatencyOptions::requests, within(1, 10'000'000));
    field("seed", &LatencyOptions::seed);
    field("estimate", &LatencyOptions::estimate);
    field("memory_fraction", &LatencyOptions::memory_fraction, within(0.05, 1.0));
}

/// What was simulated.
struct LatencyResult {
    std::vector<double> latency{};  ///< seconds from arrival to the last token, ascending, one per request
    double makespan = 0;            ///< seconds from the first arrival to the last token of all
    /// @param percent 0 .. 100; the smallest latency that so many per cent of the requests do not exceed
    /// @throws InvalidInput for other numbers; 0 where nothing was simulated
    [[nodiscard]] double percentile(double percent) const;
};
template <class F>
constexpr void visit_fields(std::type_identity<LatencyResult>, F&& field) {
    field("latency", &LatencyResult::latency);
    field("makespan", &LatencyResult::makespan);
}

/// Simulates requests that arrive at a rate and go to replicas as the plan's shares say (each request for itself, at random;
/// replicas of a deployment in turn).
///
/// A replica that runs requests r with latencies L_r alone and busy times b_r = 1 / throughput gives each of them the
/// speed min(1, 1 / sum b_r / L_r): alone they take L_r, and together no more than the estimated throughput. At most as many
/// run as KV cache and `max_batch` allow; others wait, first come, first served.
///
/// @param plan of this request, with one replica or more for each model that is asked for something
/// @throws InvalidInput for malformed input, and for plans that do not serve what is asked
/// @note deterministic
/// Complexity: O(n log n) for n requests.
[[nodiscard]] LatencyResult simulate_latency(const ServingRequest& request,
                                             const std::vector<PlannedReplicas>& plan,
                                             const LatencyOptions& options = {});

}  // namespace gpusched::serving

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/serving/impl/simulate_latency.ipp>
#endif
