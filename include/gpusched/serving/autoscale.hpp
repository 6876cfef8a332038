// SPDX-License-Identifier: Apache-2.0
// How many prefill and decode replicas should run, decided again every minute or so.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/serving/arrivals.hpp>
#include <gpusched/serving/estimate.hpp>

#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// How long replicas take. Prefill replicas work on one prompt at a time, decode replicas on a batch of requests.
struct ReplicaTimes {
    double prefill_base_s = 0.02;       ///< seconds of any prompt, 0 .. 1000
    double prefill_s_per_token = 1e-4;  ///< more for each of its tokens, 0 .. 1
    double transfer_s_per_token =
        0;                      ///< of the KV cache to a decode replica, per token of the prompt, 0 .. 1
    double step_base_s = 0.02;  ///< seconds of a decode step, above 0, at most 1000
    double step_s_per_request = 2e-4;  ///< more for each request of the batch, 0 .. 1000
    int max_batch = 128;               ///< requests that a decode replica holds, 1 .. 100,000
    int prefill_gpus = 4;              ///< GPUs of a prefill replica, 1 .. 10,000
    int decode_gpus = 4;               ///< GPUs of a decode replica, 1 .. 10,000
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

/// Times of replicas by the planner's estimates (or measured profiles): straight lines through those of a prompt of one token and of
/// `longest_input`, and of a batch of one and the largest. Between these, estimates grow faster the larger the prompt or batch, so the
/// lines are not below them.
///
/// @param prefill, decode of one stage each
/// @param shape mean prompt and answer: what requests of a batch hold in KV cache
/// @param longest_input tokens, >= 2
/// @throws InvalidInput for malformed arguments, and for deployments of several stages or that hold no request
[[nodiscard]] ReplicaTimes replica_times(const LanguageModel& model, std::span<const GpuType> gpus,
                                         const Deployment& prefill, const Deployment& decode,
                                         const RequestShape& shape, int longest_input = 8192,
                                         const EstimateOptions& options = {});

/// Replicas of both pools.
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

/// How pool sizes are decided.
enum class AutoscalePolicy : std::uint8_t {
    forecast,  ///< both pools for the demand that is expected when a replica started now would be ready (ours)
    utilization,  ///< each pool by how busy it is, as the Horizontal Pod Autoscaler of Kubernetes does
    token_rate,  ///< both pools in a fixed ratio, by the tokens that decode makes per second, after HeteroScale
    fixed        ///< the sizes of the start
};
constexpr auto enum_names(AutoscalePolicy) {
    return name_table<AutoscalePolicy>({
        {AutoscalePolicy::forecast, "forecast"},
        {AutoscalePolicy::utilization, "utilization"},
        {AutoscalePolicy::token_rate, "token_rate"},
        {AutoscalePolicy::fixed, "fixed"},
    });
}

/// Targets, times, and how eagerly sizes follow the demand.
struct AutoscaleOptions {
    AutoscalePolicy policy = AutoscalePolicy::forecast;  ///< what decides
    ReplicaTimes times{};                                ///< of replicas, as far as the policy knows
    double ttft_s = 2;        ///< target of the time to the first token, above 0, at most 10,000
    double tpot_s = 0.05;     ///< target of the time per further token, above 0, at most 10,000
    double percent = 90;      ///< of the requests meet each target, 50 .. 99.9
    double start_s = 180;     ///< from the decision to a replica that serves, 0 .. 86,400
    double interval_s = 60;   ///< between decisions, 1 .. 3600
    double hold_s = 600;      ///< replicas are given back when so long no more were wanted, 0 .. 86,400
    PoolSizes start{};        ///< sizes at the beginning
    int max_replicas = 1000;  ///< of each pool, 1 .. 100,000
    /// `forecast`: requests/s expected over the day, at equal distances from midnight on; empty: the trend of the last minutes is followed.
    std::vector<double> expected_per_s{};
    double utilization =
        0.6;  ///< `utilization`, `token_rate`: of what a replica can do within the targets, 0.05 .. 1
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

/// @throws InvalidInput with everything out of range, and for targets that an idle replica does not meet
void validate(const AutoscaleOptions& options);

/// What is seen of one interval.
struct PoolWindow {
    double time_s = 0;                 ///< its end
    double seconds = 60;               ///< its length
    std::vector<Arrival> arrived{};    ///< requests of the interval
    std::int64_t prefill_waiting = 0;  ///< prompts that wait for a prefill replica, at the end
    std::int64_t decode_waiting = 0;   ///< requests that wait for room in a decode replica, at the end
    double prefill_busy = 0;           ///< prefill replicas at work, on average
    double decode_requests = 0;        ///< requests in decode, on average
    double tokens_per_s = 0;           ///< that decode made
    /// Percentile of the times to a first token that came in the interval; NaN where none came.
    double ttft_s = std::numeric_limits<double>::quiet_NaN();
    /// Percentile of the times per further token of requests that ended in the interval; NaN where none did.
    double tpot_s = std::numeric_limits<double>::quiet_NaN();
    PoolSizes ready{};         ///< replicas that take requests
    PoolSizes starting{0, 0};  ///< replicas that will
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

/// The fewest replicas of both pools that meet the targets at a steady rate of such requests, by queueing formulas.
///
/// Prefill: c servers wait with probability P(W > t) = C(c, a) exp(-(c - a) t / (E[S] (1 + cv^2) / 2)), Erlang's C for a load of a = rate
/// E[S]; at most a fifth of the requests that the percentile lets be late may be late for W + their own S, which leaves room for bunching. A prompt that takes
/// longer than the target by itself is late in any case. Decode: a replica of b requests takes s(b) = base + b x per-request for a step;
/// each of d replicas then has b = x base / (1 - x per-request) requests, x = rate E[output - 1] / d, and the batch that is exceeded
/// with the same probability, by the normal approximation, must be within the target.
/// @param sample requests such as are expected, at least one
/// @param rate requests/s, >= 0
/// @param variation of the arrivals: squared coefficient of variation of the gaps, 1 for a Poisson process, 0 .. 1000
/// @return at least one of each, at most `max_replicas`
/// @throws InvalidInput for malformed arguments
/// Complexity: O(requests of the sample x log max_replicas).
[[nodiscard]] PoolSizes pool_sizes(std::span<const Arrival> sample, double rate,
                                   const AutoscaleOptions& options, double variation = 1);

/// Decides, interval by interval, how many prefill and decode replicas there should be.
///
/// `forecast`, ours: `pool_sizes` of the largest rate between now and the moment when a replica started at the next decision would
/// be ready, so both pools change together and in the ratio that the present requests need. The rate is the expected curve times
/// what the last minutes were above or below it, or without a curve the trend of the last minutes; and as much more as the forecasts so far were
/// too low, but in as many intervals as the percentile lets be late. What waits is added to the demand. While a
/// percentile is above its target, the pool's demand is multiplied by a factor that grows by a tenth per interval, and falls back slowly:
/// times that were promised and are not kept lead to more replicas. Replicas come at once; they go when for `hold_s` no more were wanted.
///
/// Sources: "Taming the Chaos" (HeteroScale, arXiv 2508.19559): one signal scales both pools so that neither is left behind, in
/// proportion to a rate and with negative feedback from latencies; its policy by decode tokens/s is `token_rate`. "P/D-Serve" (arXiv 2408.08147):
/// the ratio of prefill to decode follows the requests; prompts go to idle prefill replicas, not to queues of their own.
///
/// A value: what it does follows from options and windows alone.
class Autoscaler {
  public:
    /// @throws InvalidInput with everything out of range
    explicit Autoscaler(AutoscaleOptions options);
    /// Sizes to have from now on. Those of `fixed` are the ones of the start.
    /// @throws InvalidInput when the window is not later than the last one, or malformed
    PoolSizes step(const PoolWindow& window);
    [[nodiscard]] const AutoscaleOptions& options() const noexcept { return options_; }

  private:
    struct Wanted {
        double time_s;
        PoolSizes sizes;
    };
    PoolSizes by_forecast(const PoolWindow& window);
    PoolSizes by_utilization(const PoolWindow& window) const;
    PoolSizes by_token_rate(const PoolWindow& window) const;
    void look(const PoolWindow& window);
    [[nodiscard]] double rate_ahead(double time_s) const;
    [[nodiscard]] double expected(double time_s) const;

    AutoscaleOptions options_;
    double time_s_ = -1;            // of the last window
    std::deque<Arrival> sample_;    // the last requests
    double level_ = 0, slope_ = 0;  // of the rate: average, and its change per second
    double factor_ = 1;             // of the rate over the expected one
    double variation_ = 1;          // of the gaps between arrivals
    struct Forecast {
        double time_s, rate;
    };
    std::deque<Forecast> forecasts_;  // whose time has not come
    double error_variance_ = 0.01;    // of forecasts, as a part of them
    double more_prefill_ = 1, more_decode_ = 1;
    bool known_ = false;
    std::deque<Wanted> wanted_;  // of the last `hold_s`
};

}  // namespace gpusched::serving
