// SPDX-License-Identifier: Apache-2.0
// A day of requests on prefill and decode replicas whose numbers change: latencies, GPU-hours, starts.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/autoscale.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// What of the simulation is not the policy's business.
struct AutoscalingWorld {
    double slowdown =
        1;  ///< how much longer everything takes than the times that the policy knows, 0.1 .. 10
    double score_s = 300;  ///< windows in which percentiles are compared with the targets, 1 .. 86,400
};
template <class F>
constexpr void visit_fields(std::type_identity<AutoscalingWorld>, F&& field) {
    field("slowdown", &AutoscalingWorld::slowdown, within(0.1, 10.0));
    field("score_s", &AutoscalingWorld::score_s, within(1.0, 86400.0));
}

/// Most intervals between decisions from time 0 to the last request.
inline constexpr int most_intervals = 1'000'000;

/// What was simulated.
struct AutoscalingResult {
    std::int64_t requests = 0;  ///< that arrived
    double ttft_met = 1;        ///< of the requests, with a first token within the target
    double tpot_met = 1;        ///< of the requests, with a time per further token within the target
    double both_met = 1;        ///< of the requests, with both
    double ttft_s = 0;          ///< percentile of all requests (`AutoscaleOptions::percent`)
    double tpot_s = 0;          ///< the same of the times per further token
    double windows_met = 1;     ///< of the windows with requests (by arrival), with both percentiles in time
    double prefill_h = 0;       ///< replica-hours from the decision to start until released
    double decode_h = 0;        ///< the same of decode replicas
    double gpu_h = 0;           ///< GPU-hours of both
    double busy_gpu_h = 0;      ///< of these, at work: prompts in prefill, batches of at least one in decode
    std::int64_t starts = 0;    ///< replicas started, both pools, those of the beginning left out
    std::int64_t stops = 0;     ///< replicas given back
    std::vector<double> time_s{};         ///< per interval: its end
    std::vector<double> rate{};           ///< per interval: requests/s that arrived
    std::vector<double> window_ttft_s{};  ///< per interval: percentile of first tokens that came, NaN of none
    std::vector<double> window_tpot_s{};  ///< per interval: percentile of requests that ended, NaN of none
    std::vector<std::int64_t> wanted_prefill{};  ///< per interval: prefill replicas that the policy asked for
    std::vector<std::int64_t> wanted_decode{};   ///< per interval: decode replicas that it asked for
    std::vector<std::int64_t> ready_prefill{};   ///< per interval: prefill replicas that served at its end
    std::vector<std::int64_t> ready_decode{};    ///< per interval: decode replicas that did
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

/// Answers a window with the sizes to have from then on.
using ScalingPolicy = std::function<PoolSizes(const PoolWindow&)>;

/// Simulates requests one by one, event by event; it shares no formula with the policies.
///
/// A prompt waits in one queue for the first idle prefill replica. Its first token comes at the end of its prefill; then its KV cache is
/// transferred, and it joins the decode replica with the fewest requests (or waits for room). All requests of a decode replica get
/// their next token together; a step takes longer the more they are. A replica serves `start_s` after it was asked for, and costs from
/// then on. One that is given back takes nothing more and is released when it is empty; it is the first to come back when more are
/// wanted. Of those that are still starting the last is given up first. The clock goes on until all requests have ended; replicas cost until the last
/// interval that begins before the end of the arrivals.
///
/// @param arrivals by time, within `most_intervals`
/// @param options of the policy: times, targets, delays, sizes at the start
/// @param policy asked at the end of every interval; sizes below one count as one
/// @throws InvalidInput for malformed arguments
/// Determinism: the same arguments give the same result. Complexity: O(n (d + log n)) for n requests and d decode replicas.
[[nodiscard]] AutoscalingResult simulate_autoscaling(std::span<const Arrival> arrivals,
                                                     const AutoscaleOptions& options,
                                                     const ScalingPolicy& policy,
                                                     const AutoscalingWorld& world = {});

/// The same with an `Autoscaler` of the options.
[[nodiscard]] AutoscalingResult simulate_autoscaling(std::span<const Arrival> arrivals,
                                                     const AutoscaleOptions& options,
                                                     const AutoscalingWorld& world = {});

/// The fewest replicas that, never changed, meet both targets in the share `windows_met` of the windows: what peak provisioning with hindsight costs.
/// The pools are searched one after the other, prefill with more decode replicas than any window needs; each by bisection.
/// @throws InvalidInput for malformed arguments, for targets that idle replicas miss in too many windows, and where `max_replicas` do not do
[[nodiscard]] PoolSizes fewest_fixed(std::span<const Arrival> arrivals, const AutoscaleOptions& options,
                                     double windows_met = 0.99, const AutoscalingWorld& world = {});

}  // namespace gpusched::serving
