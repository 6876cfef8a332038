// SPDX-License-Identifier: Apache-2.0
// Autoscaling: arrivals over a day, pool sizes by queueing formulas, and the policies.
#include "serving/step_model.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/serving/autoscale.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

namespace gpusched::serving {

GPUSCHED_EXPORT double expected_rate(const DailyCurve& curve, double time_s) {
    Problems problems;
    check_fields(problems, curve);
    if (!std::isfinite(time_s)) problems.add(bad_value("time_s", number_text(time_s), "a number"));
    problems.throw_if_any();
    const double hour = time_s / 3600;
    return curve.mean_rate *
           (1 + curve.swing * std::cos(2 * std::numbers::pi * (hour - curve.peak_hour) / 24));
}

GPUSCHED_EXPORT std::vector<Arrival> daily_arrivals(std::span<const Arrival> trace, const DailyCurve& curve) {
    Problems problems;
    check_fields(problems, curve);
    bool rising = true, known = true;
    for (std::size_t i = 0; i < trace.size(); ++i) {
        rising = rising && (i == 0 || trace[i - 1].time_s <= trace[i].time_s);
        known = known && std::isfinite(trace[i].time_s) && trace[i].input >= 1 && trace[i].output >= 1;
    }
    if (!rising) problems.add("trace: not in the order of time; expected rising times");
    if (!known)
        problems.add(
            "trace: expected finite times, and at least one token of prompt and answer in each request");
    if (rising && known && (trace.size() < 2 || !(trace.back().time_s > trace.front().time_s)))
        problems.add("trace: expected at least two requests, not all at one moment");
    problems.throw_if_any();

    const Rng seed(curve.seed);
    Rng level_rng = seed.split(1), surge_rng = seed.split(2), place_rng = seed.split(3);
    // Box and Muller with the library's own uniform numbers, which are the same on every platform.
    const double normal = std::sqrt(-2 * std::log1p(-level_rng.uniform())) *
                          std::cos(2 * std::numbers::pi * level_rng.uniform());
    const double level = std::exp(curve.level_sigma * normal);
    const double end = curve.hours * 3600, surge_s = curve.surge_minutes * 60;
    const double surge_at = surge_rng.uniform() * std::max(0.0, end - surge_s);

    // The rate is constant in each step. The rest of a gap goes on in the next step.
    constexpr double step_s = 10;
    const auto n = trace.size();
    const double span = trace.back().time_s - trace.front().time_s;
    const double mean_gap = span / static_cast<double>(n - 1);
    auto at = static_cast<std::size_t>(place_rng.below(n));
    std::vector<Arrival> out;
    double wait = 0;  // requests that the curve must bring before the next request
    for (double now = 0; now < end; now += step_s) {
        const double until = std::min(now + step_s, end), middle = (now + until) / 2;
        const bool surge = middle >= surge_at && middle < surge_at + surge_s;
        const double rate = level * expected_rate(curve, middle) * (surge ? curve.surge_factor : 1);
        double moment = now;
        while (moment + wait / rate < until) {
            moment += wait / rate;
            out.push_back({moment, trace[at].input, trace[at].output});
            const auto next = at + 1 < n ? at + 1 : 0;
            wait = next > 0 ? (trace[next].time_s - trace[at].time_s) / mean_gap : 1;
            at = next;
        }
        wait -= (until - moment) * rate;
    }
    return out;
}

namespace detail {

/// The probability that a request waits with c servers and a load of a < c (Erlang's C).
static double erlang_c(int servers, double load) {
    double blocked = 1;
    for (int k = 1; k <= servers; ++k) blocked = load * blocked / (k + load * blocked);
    return blocked / (1 - load / servers * (1 - blocked));
}

/// The value that a standard normal variable exceeds with this probability, at most 1/2: Abramowitz and
/// Stegun 26.2.23, to 4.5e-4.
static double normal_quantile(double exceeded) {
    const double t = std::sqrt(-2 * std::log(exceeded));
    return t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
                   (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
}

/// The planned part of late requests: a fifth of what the percentile allows.
static double planned_late(const AutoscaleOptions& o) { return (1 - o.percent / 100) / 5; }

/// The largest batch with a step within the target.
static double target_batch(const AutoscaleOptions& o) {
    const auto& t = o.times;
    const double most = t.max_batch;
    if (!(t.step_s_per_request > 0)) return t.step_base_s <= o.tpot_s ? most : 0;
    return std::clamp((o.tpot_s - t.step_base_s) / t.step_s_per_request, 0.0, most);
}

/// The smallest number from 1 to `most` for which `enough` holds, or `most`. Numbers above one that is enough
/// must be enough, too.
template <class F>
int smallest(int most, F&& enough) {
    int high = 1;
    while (high < most && !enough(high)) high = std::min(most, 2 * high);
    int low = high / 2;  // not enough, or 0
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        (enough(middle) ? high : low) = middle;
    }
    return high;
}

static int prefill_replicas(std::span<const Arrival> sample, double rate, const AutoscaleOptions& o,
                            double variation) {
    double sum = 0, squares = 0, late_sum = 0;
    std::vector<double> slack;  // seconds that each request may wait
    for (const auto& r : sample) {
        const double s = o.times.idle_ttft_s(r);
        if (s > o.ttft_s) {
            late_sum += s;
            continue;
        }
        sum += s;
        squares += s * s;
        slack.push_back(o.ttft_s - s);
    }
    const auto n = static_cast<double>(sample.size()), in_time = static_cast<double>(slack.size());
    // Prompts that are always late: their number less its standard deviation, so that one is no evidence of
    // more. They keep servers busy, and would spoil the variation of the others.
    const double always_late = n > in_time ? n - in_time - std::sqrt(n - in_time) : 0;
    const double late_load = always_late > 0 ? rate * always_late / n * late_sum / (n - in_time) : 0;
    const double mean = in_time > 0 ? sum / in_time : 0, load = rate * mean * (in_time / n);
    if (!(load > 0)) return static_cast<int>(std::clamp(std::ceil(late_load), 1.0, 1.0 * o.max_replicas));
    const double service_variation = std::max(0.0, squares / in_time / (mean * mean) - 1);
    // Prompts that are always late reduce the part of others that can be late, but not below a fifth of the
    // plan.
    const double planned = planned_late(o);
    const double allowed = std::max(planned - always_late / n, planned / 5);
    const double all = load + late_load;
    return smallest(o.max_replicas, [&](int servers) {
        if (all >= servers) return false;
        const double waits = erlang_c(servers, all);
        const double decay = (servers - all) / (mean * (variation + service_variation) / 2);
        double late = 0;
        for (const double s : slack) late += waits * std::exp(-decay * s);
        return late / n <= allowed;
    });
}

static int decode_replicas(std::span<const Arrival> sample, double rate, const AutoscaleOptions& o,
                           double variation) {
    double tokens = 0;
    for (const auto& r : sample) tokens += r.output - 1;
    const double all = rate * tokens / static_cast<double>(sample.size());
    if (!(all > 0)) return 1;
    const double most = target_batch(o), z = normal_quantile(planned_late(o));
    return smallest(o.max_replicas, [&](int replicas) {
        const double x = all / replicas;
        if (x * o.times.step_s_per_request >= 1) return false;
        const double batch = x * o.times.step_base_s / (1 - x * o.times.step_s_per_request);
        // Each request goes to the emptiest replica, so the loads of all replicas vary together.
        const double spread = std::sqrt(batch * replicas * std::max(1.0, variation)) / replicas;
        return batch + z * spread <= most;
    });
}

}  // namespace detail

GPUSCHED_EXPORT PoolSizes pool_sizes(std::span<const Arrival> sample, double rate,
                                     const AutoscaleOptions& options, double variation) {
    validate(options);
    Problems problems;
    check_range(problems, "rate", rate, 0.0, 1e9);
    check_range(problems, "variation", variation, 0.0, 1000.0);
    if (sample.empty()) problems.add("sample: no requests; expected at least one");
    for (const auto& r : sample)
        if (r.input < 1 || r.output < 1) {
            problems.add("sample: expected at least one token of prompt and answer in each request");
            break;
        }
    problems.throw_if_any();
    return {detail::prefill_replicas(sample, rate, options, variation),
            detail::decode_replicas(sample, rate, options, variation)};
}

GPUSCHED_EXPORT ReplicaTimes replica_times(const LanguageModel& model, std::span<const GpuType> gpus,
                                           const Deployment& prefill, const Deployment& decode,
                                           const RequestShape& shape, int longest_input,
                                           const EstimateOptions& options) {
    Problems problems;
    if (longest_input < 2)
        problems.add(bad_value("longest_input", std::to_string(longest_input), "at least 2"));
    for (const auto& [name, d] : {std::pair("prefill", &prefill), std::pair("decode", &decode)})
        if (d->stages.size() != 1)
            problems.add(bad_value(name, gpusched::quoted(d->name), "a deployment of one stage"));
    check_fields(problems, shape);
    problems.throw_if_any();
    const auto needs_room = [](const ThroughputEstimate& e, const Deployment& d) {
        if (!(e.batch >= 1))
            throw InvalidInput("deployment " + gpusched::quoted(d.name) + ": does not hold one such request");
        return e;
    };
    const auto prompt = [&](int tokens) {
        return needs_room(estimate_throughput(model, gpus, prefill, {tokens, 1}, options), prefill).prefill_s;
    };
    const auto all = needs_room(estimate_throughput(model, gpus, decode, shape, options), decode);
    auto alone = options;
    alone.max_batch = 1;
    const auto one = estimate_throughput(model, gpus, decode, shape, alone);

    ReplicaTimes t;
    const double shortest_s = prompt(1);
    t.prefill_s_per_token = (prompt(longest_input) - shortest_s) / (longest_input - 1);
    t.prefill_base_s = std::max(0.0, shortest_s - t.prefill_s_per_token);
    t.max_batch = static_cast<int>(all.batch);
    t.step_s_per_request = t.max_batch > 1 ? std::max(0.0, (all.step_s - one.step_s) / (t.max_batch - 1)) : 0;
    t.step_base_s = one.step_s - t.step_s_per_request;
    t.prefill_gpus = prefill.stages.front().degree;
    t.decode_gpus = decode.stages.front().degree;
    // The KV cache of a prompt is sent over the slower network of the two groups, from all GPUs of a group at
    // once.
    const auto rate = [&](const Deployment& d) {
        const auto& gpu = gpus[static_cast<std::size_t>(d.stages.front().gpu)];
        return gpu.network_gb_s * 1e9 * options.network * d.stages.front().degree;
    };
    const double bytes_s = std::min(rate(prefill), rate(decode));
    const double bytes = detail::CacheSize(model, 1, model.bytes_per_kv).bytes(shape.input);
    t.transfer_s_per_token = bytes_s > 0 ? bytes / shape.input / bytes_s : 0;
    return t;
}

GPUSCHED_EXPORT void validate(const AutoscaleOptions& o) {
    Problems problems;
    check_fields(problems, o);
    check_fields(problems, o.times);
    check_fields(problems, o.start);
    problems.throw_if_any();
    if (const double least = o.times.prefill_base_s + o.times.prefill_s_per_token; !(least < o.ttft_s))
        problems.add(bad_value("ttft_s", number_text(o.ttft_s),
                               "more than " + number_text(least) +
                                   " s, the time of an idle replica for a prompt of one token"));
    if (detail::target_batch(o) < 1)
        problems.add(bad_value("tpot_s", number_text(o.tpot_s),
                               "at least " + number_text(o.times.step_base_s + o.times.step_s_per_request) +
                                   " s, the decode step of a single request"));
    problems.throw_if_any();
}

GPUSCHED_EXPORT Autoscaler::Autoscaler(AutoscaleOptions options) : options_(std::move(options)) {
    validate(options_);
}

GPUSCHED_EXPORT PoolSizes Autoscaler::step(const PoolWindow& window) {
    Problems problems;
    if (!std::isfinite(window.time_s) || !(window.time_s > time_s_))
        problems.add(bad_value("time_s", number_text(window.time_s), "later than the last window"));
    check_range(problems, "seconds", window.seconds, 1e-6, 1e6);
    check_range(problems, "prefill_busy", window.prefill_busy, 0.0, 1e9);
    check_range(problems, "decode_requests", window.decode_requests, 0.0, 1e12);
    check_range(problems, "tokens_per_s", window.tokens_per_s, 0.0, 1e15);
    for (const auto& [name, sizes] :
         {std::pair("ready", &window.ready), std::pair("starting", &window.starting)})
        check_fields(problems, *sizes, name);
    for (const auto& r : window.arrived)
        if (r.input < 1 || r.output < 1 || !std::isfinite(r.time_s)) {
            problems.add(
                "arrived: expected a time, and at least one token of prompt and answer in each request");
            break;
        }
    problems.throw_if_any();

    PoolSizes wanted = options_.start;
    if (options_.policy == AutoscalePolicy::forecast) wanted = by_forecast(window);
    if (options_.policy == AutoscalePolicy::utilization) wanted = by_utilization(window);
    if (options_.policy == AutoscalePolicy::token_rate) wanted = by_token_rate(window);
    time_s_ = window.time_s;
    wanted.prefill = std::clamp(wanted.prefill, 1, options_.max_replicas);
    wanted.decode = std::clamp(wanted.decode, 1, options_.max_replicas);
    if (options_.policy == AutoscalePolicy::fixed) return wanted;
    // The largest recent demand counts: pools grow at once and shrink late.
    wanted_.push_back({window.time_s, wanted});
    while (wanted_.front().time_s < window.time_s - options_.hold_s) wanted_.pop_front();
    for (const auto& w : wanted_) {
        wanted.prefill = std::max(wanted.prefill, w.sizes.prefill);
        wanted.decode = std::max(wanted.decode, w.sizes.decode);
    }
    return wanted;
}

/// The expected rate, linear between the points of the curve.
GPUSCHED_EXPORT double Autoscaler::expected(double time_s) const {
    const auto n = options_.expected_per_s.size();
    double at = std::fmod(time_s, 86400.0) / 86400 * static_cast<double>(n);
    if (at < 0) at += static_cast<double>(n);
    const auto k = static_cast<std::size_t>(at) % n;
    const double part = at - std::floor(at);
    return (1 - part) * options_.expected_per_s[k] + part * options_.expected_per_s[(k + 1) % n];
}

/// Updates the averages with the arrivals of a window.
GPUSCHED_EXPORT void Autoscaler::observe(const PoolWindow& window) {
    constexpr std::size_t most = 500;
    // Of a large window only every k-th request, so that the sample covers several windows.
    const auto step = std::max<std::size_t>(1, window.arrived.size() / (most / 5));
    for (std::size_t i = 0; i < window.arrived.size(); i += step) sample_.push_back(window.arrived[i]);
    while (sample_.size() > most) sample_.pop_front();

    const double rate = static_cast<double>(window.arrived.size()) / window.seconds;
    // The relative errors of the forecasts for this window.
    while (!forecasts_.empty() && forecasts_.front().time_s <= window.time_s) {
        const double error = std::clamp(rate / forecasts_.front().rate - 1, -1.0, 1.0);
        error_variance_ += 0.02 * (error * error - error_variance_);
        forecasts_.pop_front();
    }
    const double weight = 1 - std::exp(-window.seconds / 300);  // time constant of five minutes
    if (!observed_) {
        level_ = rate;
    } else {
        // Holt's linear trend.
        const double before = level_, ahead = level_ + slope_ * window.seconds;
        level_ = ahead + weight * (rate - ahead);
        slope_ += weight * weight * ((level_ - before) / window.seconds - slope_);
    }
    if (!options_.expected_per_s.empty()) {
        const double curve = expected(window.time_s - window.seconds / 2);
        const double factor = curve > 0 ? std::clamp(rate / curve, 0.05, 20.0) : 1;
        factor_ = observed_ ? factor_ + weight * (factor - factor_) : factor;
    }
    // Burstiness: the variance of the arrivals per ten seconds over their mean.
    constexpr double bin_s = 10;
    const auto bins = static_cast<std::size_t>(window.seconds / bin_s);
    if (bins >= 3 && window.arrived.size() >= 2 * bins) {
        std::vector<double> counts(bins, 0);
        for (const auto& r : window.arrived) {
            const double at = (r.time_s - (window.time_s - window.seconds)) / bin_s;
            if (at >= 0 && at < static_cast<double>(bins)) ++counts[static_cast<std::size_t>(at)];
        }
        double mean = 0, squares = 0;
        for (const double x : counts) mean += x / static_cast<double>(bins);
        for (const double x : counts) squares += (x - mean) * (x - mean) / static_cast<double>(bins - 1);
        if (mean > 0) variation_ += 0.1 * (std::clamp(squares / mean, 0.5, 20.0) - variation_);
    }
    observed_ = true;
}

/// The largest rate until a replica started at the next decision serves.
GPUSCHED_EXPORT double Autoscaler::rate_ahead(double time_s) const {
    const double horizon = options_.start_s + options_.interval_s;
    if (options_.expected_per_s.empty()) return std::max(level_, level_ + slope_ * horizon);
    double most = 0;
    for (int k = 0; k <= 4; ++k) most = std::max(most, expected(time_s + horizon * k / 4));
    return factor_ * most;
}

GPUSCHED_EXPORT PoolSizes Autoscaler::by_forecast(const PoolWindow& window) {
    observe(window);
    if (sample_.empty()) return options_.start;
    const auto correct = [](double& factor, double seen, double target) {
        if (seen > target)
            factor = std::min(2.0, factor * 1.1);
        else if (!(seen > 0.8 * target))  // unchanged between 80 % and 100 % of the target
            factor = std::max(1.0, factor * 0.99);
    };
    correct(prefill_boost_, window.ttft_s, options_.ttft_s);
    correct(decode_boost_, window.tpot_s, options_.tpot_s);
    const std::vector<Arrival> sample(sample_.begin(), sample_.end());
    // A sudden rise counts at once: the rate of the last window, less two standard deviations.
    const auto arrived = static_cast<double>(window.arrived.size());
    const double least = (arrived - 2 * std::sqrt(arrived * variation_)) / window.seconds;
    const double ahead = rate_ahead(window.time_s);
    if (ahead > 0) forecasts_.push_back({window.time_s + options_.start_s + options_.interval_s, ahead});
    const double margin =
        1 + detail::normal_quantile(detail::planned_late(options_)) * std::sqrt(error_variance_);
    const double rate = std::max({margin * ahead, least, 0.0});
    const auto of = [&](double factor, std::int64_t waiting) {
        // Waiting requests are to be served within an interval, in addition to new ones.
        return std::min(1e9, factor * rate + static_cast<double>(waiting) / options_.interval_s);
    };
    return {
        detail::prefill_replicas(sample, of(prefill_boost_, window.prefill_waiting), options_, variation_),
        detail::decode_replicas(sample, of(decode_boost_, window.decode_waiting), options_, variation_)};
}

namespace detail {

/// The rule of the Horizontal Pod Autoscaler: enough replicas for the target load of each, unchanged within
/// 10 % of it.
static int proportional(int now, double load_of_all, double target) {
    const double wanted = load_of_all / target;
    if (now > 0 && std::abs(wanted / now - 1) <= 0.1) return now;
    return static_cast<int>(std::ceil(wanted - 1e-9));
}

}  // namespace detail

GPUSCHED_EXPORT PoolSizes Autoscaler::by_utilization(const PoolWindow& window) const {
    const double slots = std::max(1.0, detail::target_batch(options_));
    return {
        detail::proportional(window.ready.prefill + window.starting.prefill, window.prefill_busy,
                             options_.utilization),
        detail::proportional(window.ready.decode + window.starting.decode,
                             (window.decode_requests + static_cast<double>(window.decode_waiting)) / slots,
                             options_.utilization)};
}

GPUSCHED_EXPORT PoolSizes Autoscaler::by_token_rate(const PoolWindow& window) const {
    const auto& t = options_.times;
    const double batch = std::max(1.0, detail::target_batch(options_));
    const double most = batch / (t.step_base_s + batch * t.step_s_per_request);  // tokens/s of a full replica
    const int decode = detail::proportional(window.ready.decode + window.starting.decode,
                                            window.tokens_per_s / most, options_.utilization);
    return {static_cast<int>(std::ceil(decode * options_.ratio - 1e-9)), decode};
}

}  // namespace gpusched::serving
