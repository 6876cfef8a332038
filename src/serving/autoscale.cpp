#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/serving/autoscale.hpp>
#include <gpusched/serving/impl/pool_sizes.ipp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace GPUSCHED_NAMESPACE::serving {

GPUSCHED_INLINE void validate(const AutoscaleOptions& o) {
    Problems problems;
    check_fields(problems, o);
    check_fields(problems, o.times);
    check_fields(problems, o.start);
    problems.throw_if_any();
    if (const double least = o.times.prefill_base_s + o.times.prefill_s_per_token; !(least < o.ttft_s))
        problems.add(bad_value("ttft_s", number_text(o.ttft_s),
                               "more than " + number_text(least) +
                                   " s, what an idle replica takes for a prompt of one token"));
    if (detail::target_batch(o) < 1)
        problems.add(bad_value("tpot_s", number_text(o.tpot_s),
                               "at least " + number_text(o.times.step_base_s + o.times.step_s_per_request) +
                                   " s, the decode step of a single request"));
    problems.throw_if_any();
}

GPUSCHED_INLINE Autoscaler::Autoscaler(AutoscaleOptions options) : options_(std::move(options)) {
    validate(options_);
}

GPUSCHED_INLINE PoolSizes Autoscaler::step(const PoolWindow& window) {
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
    // The most that was wanted lately: replicas come at once, and go late.
    wanted_.push_back({window.time_s, wanted});
    while (wanted_.front().time_s < window.time_s - options_.hold_s) wanted_.pop_front();
    for (const auto& w : wanted_) {
        wanted.prefill = std::max(wanted.prefill, w.sizes.prefill);
        wanted.decode = std::max(wanted.decode, w.sizes.decode);
    }
    return wanted;
}

/// Of the expected curve, by straight lines between its points.
GPUSCHED_INLINE double Autoscaler::expected(double time_s) const {
    const auto n = options_.expected_per_s.size();
    double at = std::fmod(time_s, 86400.0) / 86400 * static_cast<double>(n);
    if (at < 0) at += static_cast<double>(n);
    const auto k = static_cast<std::size_t>(at) % n;
    const double part = at - std::floor(at);
    return (1 - part) * options_.expected_per_s[k] + part * options_.expected_per_s[(k + 1) % n];
}

/// Takes a window's arrivals into the averages.
GPUSCHED_INLINE void Autoscaler::look(const PoolWindow& window) {
    constexpr std::size_t most = 500;
    // Every k-th of a full window, so that the sample is of several windows.
    const auto step = std::max<std::size_t>(1, window.arrived.size() / (most / 5));
    for (std::size_t i = 0; i < window.arrived.size(); i += step) sample_.push_back(window.arrived[i]);
    while (sample_.size() > most) sample_.pop_front();

    const double rate = static_cast<double>(window.arrived.size()) / window.seconds;
    // How far off the forecasts for this window were, as a part of them.
    while (!forecasts_.empty() && forecasts_.front().time_s <= window.time_s) {
        const double error = std::clamp(rate / forecasts_.front().rate - 1, -1.0, 1.0);
        error_variance_ += 0.02 * (error * error - error_variance_);
        forecasts_.pop_front();
    }
    const double weight = 1 - std::exp(-window.seconds / 300);  // five minutes
    if (!known_) {
        level_ = rate;
    } else {
        // Holt's trend.
        const double before = level_, ahead = level_ + slope_ * window.seconds;
        level_ = ahead + weight * (rate - ahead);
        slope_ += weight * weight * ((level_ - before) / window.seconds - slope_);
    }
    if (!options_.expected_per_s.empty()) {
        const double curve = expected(window.time_s - window.seconds / 2);
        const double factor = curve > 0 ? std::clamp(rate / curve, 0.05, 20.0) : 1;
        factor_ = known_ ? factor_ + weight * (factor - factor_) : factor;
    }
    // Bunching: variance of the arrivals of ten seconds over their mean.
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
    known_ = true;
}

/// The largest rate from now until what is started at the next decision would serve.
GPUSCHED_INLINE double Autoscaler::rate_ahead(double time_s) const {
    const double horizon = options_.start_s + options_.interval_s;
    if (options_.expected_per_s.empty()) return std::max(level_, level_ + slope_ * horizon);
    double most = 0;
    for (int k = 0; k <= 4; ++k) most = std::max(most, expected(time_s + horizon * k / 4));
    return factor_ * most;
}

GPUSCHED_INLINE PoolSizes Autoscaler::by_forecast(const PoolWindow& window) {
    look(window);
    if (sample_.empty()) return options_.start;
    const auto correct = [](double& factor, double seen, double target) {
        if (seen > target)
            factor = std::min(2.0, factor * 1.1);
        else if (!(seen > 0.8 * target))  // between, it stays
            factor = std::max(1.0, factor * 0.99);
    };
    correct(more_prefill_, window.ttft_s, options_.ttft_s);
    correct(more_decode_, window.tpot_s, options_.tpot_s);
    const std::vector<Arrival> sample(sample_.begin(), sample_.end());
    // A rate that has just gone up is not waited out: the last window alone counts too, less what may be chance.
    const auto arrived = static_cast<double>(window.arrived.size());
    const double least = (arrived - 2 * std::sqrt(arrived * variation_)) / window.seconds;
    const double ahead = rate_ahead(window.time_s);
    if (ahead > 0) forecasts_.push_back({window.time_s + options_.start_s + options_.interval_s, ahead});
    const double margin =
        1 + detail::normal_quantile(detail::planned_late(options_)) * std::sqrt(error_variance_);
    const double rate = std::max({margin * ahead, least, 0.0});
    const auto of = [&](double factor, std::int64_t waiting) {
        // What waits is to be worked off in an interval beside what comes.
        return std::min(1e9, factor * rate + static_cast<double>(waiting) / options_.interval_s);
    };
    return {detail::prefill_replicas(sample, of(more_prefill_, window.prefill_waiting), options_, variation_),
            detail::decode_replicas(sample, of(more_decode_, window.decode_waiting), options_, variation_)};
}

}  // namespace GPUSCHED_NAMESPACE::serving
