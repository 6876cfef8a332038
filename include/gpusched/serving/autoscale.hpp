// SPDX-License-Identifier: Apache-2.0
// Autoscaling of prefill and decode replicas: arrivals over a day, pool sizes, and the policies that change
// them.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/serving/estimate.hpp>

#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// A request that arrives at some time.
struct Arrival {
    double time_s = 0;  ///< seconds since midnight of the first day, >= 0
    int input = 1;      ///< tokens of the prompt, >= 1
    int output = 1;     ///< tokens generated, >= 1
    bool operator==(const Arrival&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Arrival>, F&& field) {
    field("time_s", &Arrival::time_s);
    field("input", &Arrival::input, at_least(1));
    field("output", &Arrival::output, at_least(1));
}

/// A daily curve of requests/s, and the deviations of a day from it.
///
/// The curve at hour h is `mean_rate` (1 + `swing` cos(2 pi (h - `peak_hour`) / 24)) requests/s. A day has a
/// random level (log-normal with `level_sigma`) and one surge that starts at a random time.
struct DailyCurve {
    double mean_rate = 10;  ///< requests/s on average, above 0, at most 10,000
    /// Relative amplitude, 0 .. 0.95; with 0.5 the peak is three times the minimum.
    double swing = 0.5;
    double peak_hour = 15;      ///< hour of the peak, 0 .. 24
    double hours = 24;          ///< length, above 0, at most 240
    double level_sigma = 0.1;   ///< standard deviation of the logarithm of the level, 0 .. 1
    double surge_factor = 1.5;  ///< rate during the surge over the rate without it, 1 .. 10
    double surge_minutes = 30;  ///< length of the surge, 0 .. 240
    std::uint64_t seed = 0;     ///< seed of the level, the surge, and the start in the trace
};
template <class F>
constexpr void visit_fields(std::type_identity<DailyCurve>, F&& field) {
    field("mean_rate", &DailyCurve::mean_rate, more_than(0.0, 1e4));
    field("swing", &DailyCurve::swing, within(0.0, 0.95));
    field("peak_hour", &DailyCurve::peak_hour, within(0.0, 24.0));
    field("hours", &DailyCurve::hours, more_than(0.0, 240.0));
    field("level_sigma", &DailyCurve::level_sigma, within(0.0, 1.0));
    field("surge_factor", &DailyCurve::surge_factor, within(1.0, 10.0));
    field("surge_minutes", &DailyCurve::surge_minutes, within(0.0, 240.0));
    field("seed", &DailyCurve::seed);
}

/// Returns the requests/s of the curve at a time, without level and surge.
/// @throws InvalidInput with every field out of range
[[nodiscard]] double expected_rate(const DailyCurve& curve, double time_s);

/// Stretches a trace along a daily curve. Requests keep their order and burstiness; their rate follows the
/// curve.
///
/// The trace is read cyclically from a random start. For a trace of n requests in T seconds, a gap of g
/// seconds becomes the time in which the curve brings g n / T requests.
/// @param trace by time, at least two requests, not all at one time
/// @throws InvalidInput with every field out of range, and for other traces Determinism: everything follows
///     from `curve.seed`. Complexity: O(requests).
[[nodiscard]] std::vector<Arrival> daily_arrivals(std::span<const Arrival> trace,
                                                  const DailyCurve& curve = {});

/// The times of replicas. A prefill replica works on one prompt at a time, a decode replica on a batch of
/// requests.
struct ReplicaTimes {
    double prefill_base_s = 0.02;       ///< fixed seconds per prompt, 0 .. 1000
    double prefill_s_per_token = 1e-4;  ///< seconds per token of the prompt, 0 .. 1
    double transfer_s_per_token = 0;    ///< seconds to send the KV cache of a prompt token, 0 .. 1
    double step_base_s = 0.02;          ///< fixed seconds per decode step, above 0, at most 1000
    double step_s_per_request = 2e-4;   ///< seconds per request of the batch, 0 .. 1000
    int max_batch = 128;                ///< most requests in a decode replica, 1 .. 100,000
    int prefill_gpus = 4;               ///< GPUs of a prefill replica, 1 .. 10,000
    int decode_gpus = 4;                ///< GPUs of a decode replica, 1 .. 10,000

    /// Seconds to the first token on an idle replica.
    [[nodiscard]] double idle_ttft_s(const Arrival& request) const {
        return prefill_base_s + prefill_s_per_token * request.input;
    }
    /// Seconds per further token on an idle replica; 0 for requests of one token.
    [[nodiscard]] double idle_tpot_s(const Arrival& request) const {
        if (request.output <= 1) return 0;
        return transfer_s_per_token * request.input / (request.output - 1) + step_base_s + step_s_per_request;
    }
    bool operator==(const ReplicaTimes&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ReplicaTimes>, F&& field) {
    field("prefill_base_s", &ReplicaTimes::prefill_base_s, within(0.0, 1000.0));
    field("prefill_s_per_token", &ReplicaTimes::prefill_s_per_token, within(0.0, 1.0));
    field("transfer_s_per_token", &ReplicaTimes::transfer_s_per_token, within(0.0, 1.0));
    field("step_base_s", &ReplicaTimes::step_base_s, more_than(0.0, 1000.0));
    field("step_s_per_request", &ReplicaTimes::step_s_per_request, within(0.0, 1000.0));
    field("max_batch", &ReplicaTimes::max_batch, within(1, 100'000));
    field("prefill_gpus", &ReplicaTimes::prefill_gpus, within(1, 10'000));
    field("decode_gpus", &ReplicaTimes::decode_gpus, within(1, 10'000));
}

/// Derives times of replicas from the planner's estimates, or from measured profiles.
///
/// They are straight lines through the times of a prompt of one token and of `longest_input`, and of a batch
/// of one and the largest. Estimates grow faster the larger the prompt or batch, so in between the lines are
/// not below them.
///
/// @param prefill, decode deployments with one stage each
/// @param shape mean prompt and output, which determine the KV cache of the requests in a batch
/// @param longest_input tokens, >= 2
/// @throws InvalidInput for malformed arguments, deployments with several stages, and deployments without
///     room for a request
[[nodiscard]] ReplicaTimes replica_times(const LanguageModel& model, std::span<const GpuType> gpus,
                                         const Deployment& prefill, const Deployment& decode,
                                         const RequestShape& shape, int longest_input = 8192,
                                         const EstimateOptions& options = {});

/// The sizes of both pools.
struct PoolSizes {
    int prefill = 1;  ///< prefill replicas, >= 0
    int decode = 1;   ///< decode replicas, >= 0
    bool operator==(const PoolSizes&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<PoolSizes>, F&& field) {
    field("prefill", &PoolSizes::prefill, at_least(0));
    field("decode", &PoolSizes::decode, at_least(0));
}

/// The policies that decide pool sizes.
enum class AutoscalePolicy : std::uint8_t {
    forecast,     ///< both pools for the demand expected when a replica started now is ready (our policy)
    utilization,  ///< each pool by its utilization, as the Horizontal Pod Autoscaler of Kubernetes
    token_rate,   ///< both pools in a fixed ratio, by the decoded tokens per second, after HeteroScale
    fixed,        ///< the initial sizes
};

/// Options of autoscaling: targets, times, delays.
struct AutoscaleOptions {
    AutoscalePolicy policy = AutoscalePolicy::forecast;  ///< the policy
    ReplicaTimes times{};                                ///< times of replicas, as known to the policy
    double ttft_s = 2;        ///< target of the time to the first token, above 0, at most 10,000
    double tpot_s = 0.05;     ///< target of the time per further token, above 0, at most 10,000
    double percent = 90;      ///< part of the requests that must meet each target, 50 .. 99.9
    double start_s = 180;     ///< from the decision until a new replica serves, 0 .. 86,400
    double interval_s = 60;   ///< between decisions, 1 .. 3600
    double hold_s = 600;      ///< a pool shrinks to its largest size wanted in this time, 0 .. 86,400
    PoolSizes start{};        ///< initial sizes
    int max_replicas = 1000;  ///< largest size of each pool, 1 .. 100,000
    /// `forecast`: requests/s expected over the day, at equal distances from midnight on; empty = follow the
    /// recent trend.
    std::vector<double> expected_per_s{};
    /// `utilization`, `token_rate`: target load of a replica, as a part of its capacity within the targets,
    /// 0.05 .. 1.
    double utilization = 0.6;
    double ratio = 1;  ///< `token_rate`: prefill replicas per decode replica, 0.01 .. 100
};
template <class F>
constexpr void visit_fields(std::type_identity<AutoscaleOptions>, F&& field) {
    field("policy", &AutoscaleOptions::policy);
    field("times", &AutoscaleOptions::times);
    field("ttft_s", &AutoscaleOptions::ttft_s, more_than(0.0, 1e4));
    field("tpot_s", &AutoscaleOptions::tpot_s, more_than(0.0, 1e4));
    field("percent", &AutoscaleOptions::percent, within(50.0, 99.9));
    field("start_s", &AutoscaleOptions::start_s, within(0.0, 86400.0));
    field("interval_s", &AutoscaleOptions::interval_s, within(1.0, 3600.0));
    field("hold_s", &AutoscaleOptions::hold_s, within(0.0, 86400.0));
    field("start", &AutoscaleOptions::start);
    field("max_replicas", &AutoscaleOptions::max_replicas, within(1, 100'000));
    field("expected_per_s", &AutoscaleOptions::expected_per_s, within(0.0, 1e6));
    field("utilization", &AutoscaleOptions::utilization, within(0.05, 1.0));
    field("ratio", &AutoscaleOptions::ratio, within(0.01, 100.0));
}

/// @throws InvalidInput with every field out of range, and for targets that an idle replica misses
void validate(const AutoscaleOptions& options);

/// The observations of one interval.
struct PoolWindow {
    double time_s = 0;                 ///< its end
    double seconds = 60;               ///< its length
    std::vector<Arrival> arrived{};    ///< requests that arrived
    std::int64_t prefill_waiting = 0;  ///< prompts that wait for a prefill replica at the end
    std::int64_t decode_waiting = 0;   ///< requests that wait for a decode replica at the end
    double prefill_busy = 0;           ///< busy prefill replicas, on average
    double decode_requests = 0;        ///< requests in decode replicas, on average
    double tokens_per_s = 0;           ///< decoded tokens per second
    /// Percentile of the times to the first token, for first tokens in the interval; NaN if there are none.
    /// Leave out requests that miss the target even on an idle replica, since more replicas do not help them.
    double ttft_s = std::numeric_limits<double>::quiet_NaN();
    /// Percentile of the times per further token, for requests that ended in the interval; NaN if there are
    /// none. Leave out requests as for `ttft_s`.
    double tpot_s = std::numeric_limits<double>::quiet_NaN();
    PoolSizes ready{};         ///< replicas that serve
    PoolSizes starting{0, 0};  ///< replicas that start
};
template <class F>
constexpr void visit_fields(std::type_identity<PoolWindow>, F&& field) {
    field("time_s", &PoolWindow::time_s);
    field("seconds", &PoolWindow::seconds);
    field("arrived", &PoolWindow::arrived);
    field("prefill_waiting", &PoolWindow::prefill_waiting);
    field("decode_waiting", &PoolWindow::decode_waiting);
    field("prefill_busy", &PoolWindow::prefill_busy);
    field("decode_requests", &PoolWindow::decode_requests);
    field("tokens_per_s", &PoolWindow::tokens_per_s);
    field("ttft_s", &PoolWindow::ttft_s);
    field("tpot_s", &PoolWindow::tpot_s);
    field("ready", &PoolWindow::ready);
    field("starting", &PoolWindow::starting);
}

/// Returns the fewest replicas of both pools that meet the targets at a steady rate, by queueing formulas.
///
/// Prefill: a load of a = rate E[S] on c servers waits with probability P(W > t) = C(c, a) exp(-(c - a) t /
/// (E[S] (1 + cv^2) / 2)), C being Erlang's formula. A request is late if W + S exceeds the target; a fifth
/// of the requests that the percentile allows can be late. Prompts that alone take longer than the target occupy
/// servers of their own.
///
/// Decode: a step of b requests takes s(b) = base + b x per-request. Each of d replicas holds b = x base / (1
/// - x per-request) requests, with x = rate E[output - 1] / d. The batch that is exceeded with the same
/// probability must meet the target.
/// @param sample typical requests, at least one
/// @param rate requests/s, >= 0
/// @param variation squared coefficient of variation of the gaps between arrivals, 0 .. 1000; 1 = a Poisson
///     process
/// @return at least one of each, at most `max_replicas`
/// @throws InvalidInput for malformed arguments
[[nodiscard]] PoolSizes pool_sizes(std::span<const Arrival> sample, double rate,
                                   const AutoscaleOptions& options, double variation = 1);

/// Decides the sizes of both pools, interval by interval.
///
/// `forecast` computes `pool_sizes` for the largest rate until a replica started at the next decision would
/// be ready, so both pools change together.
/// - The rate is the expected curve, scaled by its error in the last minutes, or without a curve the recent
///   trend.
/// - A margin for forecast errors and the waiting requests are added.
/// - While a percentile exceeds its target, a factor on the pool's demand grows by 10 % per interval; it
///   falls slowly.
/// - New replicas start at once. A pool shrinks only after `hold_s` without a larger demand.
///
/// After HeteroScale (arXiv 2508.19559), of which `token_rate` is the policy by decoded tokens, and P/D-Serve
/// (arXiv 2408.08147); docs/serving-autoscaling.md says what it takes from each.
///
/// A value type: its decisions follow from options and windows alone.
class Autoscaler {
  public:
    /// @throws InvalidInput with every field out of range
    explicit Autoscaler(AutoscaleOptions options);
    /// Returns the sizes of the pools from now on; for `fixed` the initial ones.
    /// @throws InvalidInput for a malformed window, and one that does not end after the last one
    PoolSizes step(const PoolWindow& window);
    [[nodiscard]] const AutoscaleOptions& options() const noexcept { return options_; }

  private:
    struct Wanted {
        double time_s;
        PoolSizes sizes;
    };
    struct Forecast {
        double time_s, rate;
    };
    PoolSizes by_forecast(const PoolWindow& window);
    PoolSizes by_utilization(const PoolWindow& window) const;
    PoolSizes by_token_rate(const PoolWindow& window) const;
    void observe(const PoolWindow& window);
    [[nodiscard]] double rate_ahead(double time_s) const;
    [[nodiscard]] double expected(double time_s) const;

    AutoscaleOptions options_;
    double time_s_ = -1;                           // end of the last window
    std::deque<Arrival> sample_;                   // recent requests
    double level_ = 0, slope_ = 0;                 // smoothed rate, and its change per second
    double factor_ = 1;                            // smoothed rate over the expected one
    double variation_ = 1;                         // of the gaps between arrivals
    std::deque<Forecast> forecasts_;               // for future times
    double error_variance_ = 0.01;                 // of the relative errors of forecasts
    double prefill_boost_ = 1, decode_boost_ = 1;  // factors on the demand after missed targets
    bool observed_ = false;                        // some window was observed
    std::deque<Wanted> wanted_;                    // of the last `hold_s`
};

}  // namespace gpusched::serving
