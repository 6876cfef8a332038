// SPDX-License-Identifier: Apache-2.0
// Requests to a language model over a day: a recorded trace, stretched along a daily curve.
#pragma once

#include <gpusched/core/fields.hpp>

#include <cstdint>
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

/// The daily curve along which a trace is stretched, and how a day differs from it.
///
/// On the curve, requests/s at hour h are `mean_rate` (1 + `swing` cos(2 pi (h - `peak_hour`) / 24)). A day has a level of its own (log-normal
/// with `level_sigma`) and one surge: `surge_factor` times the rate for `surge_minutes`, from a random moment of the day on.
struct DailyCurve {
    double mean_rate = 10;      ///< requests/s on average, above 0, at most 10,000
    double swing = 0.5;         ///< 0 .. 0.95; 0.5: three times as many at the peak as in the night
    double peak_hour = 15;      ///< 0 .. 24
    double hours = 24;          ///< how long, above 0, at most 240
    double level_sigma = 0.1;   ///< of the logarithm of a day's level, 0 .. 1
    double surge_factor = 1.5;  ///< 1: no surge; 1 .. 10
    double surge_minutes = 30;  ///< 0 .. 240
    std::uint64_t seed = 0;     ///< of level, surge, and the place where the trace begins
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

/// Requests/s on the curve at a time, without the day's level and surge: what is known beforehand.
/// @throws InvalidInput with every field out of range
[[nodiscard]] double expected_rate(const DailyCurve& curve, double time_s);

/// Stretches a trace along a daily curve: requests keep their order and their bunching, and their rate follows the curve.
///
/// The trace is read from a random place on, again from its start when it ends. A gap of g seconds between two of its requests, n
/// requests in T seconds, becomes the time in which the curve brings g n / T requests.
/// @param trace by time, at least two requests, not all at one moment
/// @throws InvalidInput with every field out of range, and for such traces
/// Determinism: everything follows from `curve.seed`. Complexity: O(requests).
[[nodiscard]] std::vector<Arrival> daily_arrivals(std::span<const Arrival> trace,
                                                  const DailyCurve& curve = {});

}  // namespace gpusched::serving
