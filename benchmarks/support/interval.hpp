// SPDX-License-Identifier: Apache-2.0
// Means over seeds with the half width of their 95 % interval by Student's t.
#pragma once

#include <boost/math/distributions/students_t.hpp>

#include <cmath>
#include <numeric>
#include <vector>

namespace gpusched::bench {

struct Interval {
    double mean = 0, half = 0;
};

/// The half width is 0 for a single value, because it is unknown; without values, both are 0.
inline Interval interval(const std::vector<double>& values) {
    if (values.empty()) return {};
    const auto n = static_cast<double>(values.size());
    Interval result{.mean = std::accumulate(values.begin(), values.end(), 0.0) / n};
    if (values.size() < 2) return result;
    double squares = 0;
    for (const double v : values) squares += (v - result.mean) * (v - result.mean);
    const double t = boost::math::quantile(boost::math::students_t(n - 1), 0.975);
    result.half = t * std::sqrt(squares / (n - 1) / n);
    return result;
}

}  // namespace gpusched::bench
