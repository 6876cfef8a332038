// SPDX-License-Identifier: Apache-2.0
// Implements the correlation of activity and pressure, the latency quantiles, and the model of a tenant's
// tail.
#include <gpusched/config.hpp>
#include <gpusched/control/estimators.hpp>
#include <gpusched/core/checks.hpp>

#include <Eigen/Core>

#include <algorithm>

namespace gpusched::control {

GPUSCHED_EXPORT void ActivityCorrelation::update(double activity, double pressure) noexcept {
    // Squares must stay finite; otherwise nothing would ever be inferred again.
    constexpr double top = 1e100;
    if (!is_plausible(activity, top) || !is_plausible(pressure, top)) return;
    for (auto* sum : {&weight, &x, &y, &xx, &yy, &xy}) *sum *= decay;
    weight += 1;
    x += activity;
    y += pressure;
    xx += activity * activity;
    yy += pressure * pressure;
    xy += activity * pressure;
    windows += windows < std::numeric_limits<std::int32_t>::max();
}

GPUSCHED_EXPORT double ActivityCorrelation::correlation() const noexcept {
    if (weight <= 0) return 0;
    const double vx = xx / weight - (x / weight) * (x / weight);
    const double vy = yy / weight - (y / weight) * (y / weight);
    // Rounding errors of a constant are not variation.
    if (!(vx > 1e-9 * xx / weight) || !(vy > 1e-9 * yy / weight)) return 0;
    const double r = (xy / weight - (x / weight) * (y / weight)) / std::sqrt(vx * vy);
    return std::clamp(r, -1.0, 1.0);
}

GPUSCHED_EXPORT WindowQuantiles::WindowQuantiles(int windows) {
    require_range("windows", windows, 1, 64);
    windows_ = static_cast<std::size_t>(windows);
    counts_.assign(windows_, 0);
    histogram_.assign(windows_ * buckets, 0);
    sum_.assign(buckets, 0);
}

GPUSCHED_EXPORT void WindowQuantiles::record(double latency_ms) noexcept {
    if (!is_usable(latency_ms)) return;
    const double us = std::min(latency_ms * 1000 + 0.5, static_cast<double>(top_us));
    const auto bucket = bucket_of(static_cast<std::uint64_t>(us));
    ++histogram_[current_ * buckets + bucket];
    ++sum_[bucket];
    ++counts_[current_];
    ++total_;
}

GPUSCHED_EXPORT void WindowQuantiles::advance() noexcept {
    current_ = (current_ + 1) % windows_;
    if (counts_[current_] == 0) return;
    auto* const oldest = histogram_.data() + current_ * buckets;
    for (std::size_t b = 0; b < buckets; ++b) {
        sum_[b] -= oldest[b];
        oldest[b] = 0;
    }
    total_ -= counts_[current_];
    counts_[current_] = 0;
}

GPUSCHED_EXPORT void WindowQuantiles::clear() noexcept {
    std::fill(histogram_.begin(), histogram_.end(), 0u);
    std::fill(sum_.begin(), sum_.end(), 0u);
    std::fill(counts_.begin(), counts_.end(), 0);
    total_ = 0;
    current_ = 0;
}

GPUSCHED_EXPORT double WindowQuantiles::middle_us(std::size_t bucket) noexcept {
    const auto octave = bucket >> bits;
    if (octave <= 1) return static_cast<double>(bucket);
    const auto shift = octave - 1;  // the octave's number encodes the top bit of the value
    const auto low = static_cast<double>((bucket - (shift << bits)) << shift);
    return low + (static_cast<double>(std::uint64_t{1} << shift) - 1) / 2;
}

GPUSCHED_EXPORT double WindowQuantiles::quantile_ms(double q) const noexcept {
    if (total_ == 0) return std::numeric_limits<double>::quiet_NaN();
    const auto n = static_cast<double>(total_);
    const auto rank = q > 0 ? static_cast<std::int64_t>(std::clamp(std::ceil(q * n), 1.0, n)) : 1;
    std::int64_t seen = 0;
    for (std::size_t b = 0; b < buckets; ++b) {
        seen += sum_[b];
        if (seen >= rank) return middle_us(b) / 1000;
    }
    return middle_us(buckets - 1) / 1000;
}

namespace tail_detail {

// Initial coefficients and their uncertainty, in parts of the target.
constexpr std::array<double, TailModel::terms> assumed{0, 0.25, 0.1, 0.25, 0.25};
constexpr std::array<double, TailModel::terms> trust{0.5, 0.15, 0.15, 0.15, 0.15};
constexpr double noise = 0.15;   // of an average; neighbouring averages share most of their windows
constexpr double drift = 0.005;  // of b0 per window

}  // namespace tail_detail

GPUSCHED_EXPORT void TailModel::update(const Exposure& seen, double weight, double tail_ms,
                                       double tau_ms) noexcept {
    using namespace tail_detail;
    const auto x = seen.terms();
    if (!known_) {
        known_ = true;
        seen_ = x;
        double rest = tail_ms;
        for (std::size_t k = 1; k < terms; ++k) {
            mean_[k] = assumed[k] * tau_ms;
            rest -= mean_[k] * x[k];
        }
        mean_[0] = rest;
        for (std::size_t k = 0; k < terms; ++k) cov_[k][k] = trust[k] * tau_ms * trust[k] * tau_ms;
        return;
    }
    constexpr int n = terms;
    using Vector = Eigen::Matrix<double, n, 1>;
    Eigen::Map<Vector> mean(mean_.data()), average(seen_.data());
    Eigen::Map<Eigen::Matrix<double, n, n>> cov(cov_.front().data());
    average = weight * Eigen::Map<const Vector>(x.data()) + (1 - weight) * average;
    cov(0, 0) += drift * tau_ms * drift * tau_ms;
    // Sums term by term, because Eigen's products and dot products add in an order that depends on the
    // compiler's flags.
    Vector gain = cov.col(0) * average[0];
    for (int k = 1; k < n; ++k) gain += cov.col(k) * average[k];
    double variance = noise * tau_ms * noise * tau_ms, error = tail_ms;
    for (int k = 0; k < n; ++k) {
        variance += gain[k] * average[k];
        error -= mean[k] * average[k];
    }
    mean += gain / variance * error;
    cov -= gain * gain.transpose() / variance;  // stays symmetric to the bit
}

GPUSCHED_EXPORT double TailModel::predict(const Exposure& there, double tail_ms) const noexcept {
    const auto x = there.terms();
    double explained = 0, change = 0;
    for (std::size_t k = 1; k < terms; ++k) {
        const double slope = std::max(0.0, mean_[k]);
        explained += slope * seen_[k];
        change += slope * (x[k] - seen_[k]);
    }
    const double scale = explained > tail_ms && explained > 0 ? tail_ms / explained : 1;
    return std::max(0.0, tail_ms + scale * change);
}

GPUSCHED_EXPORT double expected_misses(double ratio) noexcept {
    if (!(ratio > 0)) return 0;
    constexpr double knee = 1.15;
    // Approximates e^z by (1 + z / 8)^8, with z = 16 (ratio - 1): the same bits on every machine.
    double power = std::max(0.0, 1 + 2 * (std::min(ratio, knee) - 1));
    for (int k = 0; k < 3; ++k) power *= power;
    return 0.01 * power + 0.5 * std::max(0.0, ratio - knee);
}

}  // namespace gpusched::control
