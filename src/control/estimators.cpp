// SPDX-License-Identifier: Apache-2.0
// Implements the correlation of activity and pressure, and the latency quantiles.
#include <gpusched/config.hpp>
#include <gpusched/control/estimators.hpp>
#include <gpusched/core/checks.hpp>

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

}  // namespace gpusched::control
