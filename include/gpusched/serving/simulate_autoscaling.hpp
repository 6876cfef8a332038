// SPDX-License-Identifier: Apache-2.0
// Simulation of autoscaling: requests on prefill and decode replicas whose numbers change.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/autoscale.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// Properties of the simulation that the policy does not know.
struct AutoscalingWorld {
    double slowdown = 1;   ///< factor on the times that the policy knows, 0.1 .. 10
    double score_s = 300;  ///< length of the windows whose percentiles must meet the targets, 1 .. 86,400
};
template <class F>
constexpr void visit_fields(std::type_identity<AutoscalingWorld>, F&& field) {
    field("slowdown", &AutoscalingWorld::slowdown, within(0.1, 10.0));
    field("score_s", &AutoscalingWorld::score_s, within(1.0, 86400.0));
}

/// The most intervals between decisions, from time 0 to the last request.
inline constexpr int most_intervals = 1'000'000;

/// The result of a simulation. Lists have one entry per interval.
struct AutoscalingResult {
    std::int64_t requests = 0;  ///< requests that arrived
    double ttft_met = 1;        ///< part of the requests with a first token within the target
    double tpot_met = 1;        ///< part of the requests with a time per further token within the target
    double both_met = 1;        ///< part of the requests that meet both targets
    double ttft_s = 0;          ///< percentile of the times to the first token (`AutoscaleOptions::percent`)
    double tpot_s = 0;          ///< percentile of the times per further token
    /// Part of the windows (by arrival) in which both percentiles meet the targets.
    double windows_met = 1;
    double prefill_h = 0;          ///< hours of prefill replicas, from the decision to start until released
    double decode_h = 0;           ///< hours of decode replicas, likewise
    double gpu_h = 0;              ///< GPU-hours of both
    double busy_gpu_h = 0;         ///< busy GPU-hours: prompts in prefill, at least one request in decode
    std::int64_t starts = 0;       ///< replicas started, without the initial ones
    std::int64_t stops = 0;        ///< replicas stopped
    std::vector<double> time_s{};  ///< its end
    std::vector<double> rate{};    ///< requests/s that arrived
    std::vector<double> window_ttft_s{};         ///< percentile of first tokens in the interval; NaN = none
    std::vector<double> window_tpot_s{};         ///< percentile of requests that ended in it; NaN = none
    std::vector<std::int64_t> wanted_prefill{};  ///< prefill replicas that the policy requested
    std::vector<std::int64_t> wanted_decode{};   ///< decode replicas that the policy requested
    std::vector<std::int64_t> ready_prefill{};   ///< prefill replicas that served at its end
    std::vector<std::int64_t> ready_decode{};    ///< decode replicas that served at its end
};
template <class F>
constexpr void visit_fields(std::type_identity<AutoscalingResult>, F&& field) {
    field("requests", &AutoscalingResult::requests);
    field("ttft_met", &AutoscalingResult::ttft_met);
    field("tpot_met", &AutoscalingResult::tpot_met);
    field("both_met", &AutoscalingResult::both_met);
    field("ttft_s", &AutoscalingResult::ttft_s);
    field("tpot_s", &AutoscalingResult::tpot_s);
    field("windows_met", &AutoscalingResult::windows_met);
    field("prefill_h", &AutoscalingResult::prefill_h);
    field("decode_h", &AutoscalingResult::decode_h);
    field("gpu_h", &AutoscalingResult::gpu_h);
    field("busy_gpu_h", &AutoscalingResult::busy_gpu_h);
    field("starts", &AutoscalingResult::starts);
    field("stops", &AutoscalingResult::stops);
    field("time_s", &AutoscalingResult::time_s);
    field("rate", &AutoscalingResult::rate);
    field("window_ttft_s", &AutoscalingResult::window_ttft_s);
    field("window_tpot_s", &AutoscalingResult::window_tpot_s);
    field("wanted_prefill", &AutoscalingResult::wanted_prefill);
    field("wanted_decode", &AutoscalingResult::wanted_decode);
    field("ready_prefill", &AutoscalingResult::ready_prefill);
    field("ready_decode", &AutoscalingResult::ready_decode);
}

/// Returns the sizes of the pools after a window.
using ScalingPolicy = std::function<PoolSizes(const PoolWindow&)>;

/// Simulates requests one by one, event by event. It shares no formula with the policies.
///
/// Prompts wait in one queue for idle prefill replicas. At the end of its prefill a request has its first token.
/// Then its KV cache is transferred, and it joins the decode replica with the fewest requests, or waits for room.
/// All requests of a decode replica get their next token together.
///
/// A replica serves `start_s` after the request for it, and costs from then on. A stopped replica is released when
/// it is empty; it is the first to return if the pool grows. Of starting replicas the last is cancelled first.
/// Replicas cost until the last interval that begins before the end of the arrivals.
/// @param arrivals by time, within `most_intervals`
/// @param options targets, times, delays, initial sizes
/// @param policy called at the end of every interval; sizes below one count as one
/// @throws InvalidInput for malformed arguments
/// @note the same arguments give the same result
[[nodiscard]] AutoscalingResult simulate_autoscaling(std::span<const Arrival> arrivals,
                                                     const AutoscaleOptions& options,
                                                     const ScalingPolicy& policy,
                                                     const AutoscalingWorld& world = {});

/// Simulates with an `Autoscaler` of the options.
[[nodiscard]] AutoscalingResult simulate_autoscaling(std::span<const Arrival> arrivals,
                                                     const AutoscaleOptions& options,
                                                     const AutoscalingWorld& world = {});

/// Finds the fewest fixed replicas that meet both targets in a part `windows_met` of the windows: the cost of
/// peak provisioning with hindsight.
///
/// Bisection searches the decode pool with the largest prefill pool, then the prefill pool.
/// @throws InvalidInput for malformed arguments, for targets that idle replicas miss in too many windows, and
///     if `max_replicas` do not suffice
[[nodiscard]] PoolSizes fewest_fixed(std::span<const Arrival> arrivals, const AutoscaleOptions& options,
                                     double windows_met = 0.99, const AutoscalingWorld& world = {});

}  // namespace gpusched::serving
