// SPDX-License-Identifier: Apache-2.0
// Implements the model of a tenant's tail.
#include <gpusched/config.hpp>
#include <gpusched/control/tail_model.hpp>

#include <Eigen/Core>

#include <algorithm>

namespace gpusched::control {

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
