// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/serving/arrivals.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

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
    // Box and Muller, with the library's own uniform numbers: the same everywhere.
    const double normal = std::sqrt(-2 * std::log1p(-level_rng.uniform())) *
                          std::cos(2 * std::numbers::pi * level_rng.uniform());
    const double level = std::exp(curve.level_sigma * normal);
    const double end = curve.hours * 3600, surge_s = curve.surge_minutes * 60;
    const double surge_at = surge_rng.uniform() * std::max(0.0, end - surge_s);

    // Steps short enough for a rate that is constant in each; what is left of a gap goes on in the next step.
    constexpr double step_s = 10;
    const auto n = trace.size();
    const double span = trace.back().time_s - trace.front().time_s;
    const double mean_gap = span / static_cast<double>(n - 1);
    auto at = static_cast<std::size_t>(place_rng.below(n));
    std::vector<Arrival> out;
    double wait = 0;  // requests that the curve must bring before the next one comes
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

}  // namespace gpusched::serving
