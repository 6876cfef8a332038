// SPDX-License-Identifier: Apache-2.0
// What one replica serves of one kind of requests within targets: read from measured latencies, or simulated.
#pragma once

#include "serving/batching_replica.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/serving/latency_targets.hpp>
#include <gpusched/serving/measurements.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace gpusched::serving::detail {

/// Whether a replica that nobody else uses keeps the targets.
inline bool idle_keeps(const KindTimes& t, const std::vector<LatencyTarget>& targets) {
    return std::all_of(targets.begin(), targets.end(), [&](const LatencyTarget& target) {
        return (target.first_token ? t.prefill_s + t.lag_s : t.steps > 0 ? t.step_s : 0) <= target.seconds;
    });
}

/// Whether a replica keeps the targets at a load: `spacing` are times between arrivals at one request per second.
inline bool keeps(const KindTimes& times, const std::vector<LatencyTarget>& targets, double load,
                  const std::vector<double>& spacing) {
    std::vector<Job> jobs;
    jobs.reserve(spacing.size());
    double now = 0;
    for (const double gap : spacing) jobs.push_back({now += gap / load, 0});
    const std::vector<KindTimes> kinds{times};
    const auto found = BatchingReplica(kinds).run(jobs);
    std::vector<double> first, each;
    for (std::size_t j = jobs.size() / 5; j < jobs.size(); ++j) {  // the first fifth fills the replica
        first.push_back(found[j].first);
        if (times.steps > 0) each.push_back((found[j].all - found[j].first) / times.steps);
    }
    std::sort(first.begin(), first.end());
    std::sort(each.begin(), each.end());
    return std::all_of(targets.begin(), targets.end(), [&](const LatencyTarget& target) {
        return percentile_of(target.first_token ? first : each, target.percent) <= target.seconds;
    });
}

/// Requests/s within the targets, at most `limit`; 0 where an idle replica misses them. By bisection to a hundredth.
inline double simulated_capacity(const KindTimes& times, const std::vector<LatencyTarget>& targets,
                                 double limit, const std::vector<double>& spacing) {
    if (!idle_keeps(times, targets)) return 0;
    if (targets.empty() || keeps(times, targets, limit, spacing)) return limit;
    double low = 0, high = limit;
    for (int i = 0; i < 7; ++i) {
        const double middle = (low + high) / 2;
        (keeps(times, targets, middle, spacing) ? low : high) = middle;
    }
    return low;
}

/// The measured latency of a row, if it has it.
inline const std::optional<double>& latency_of(const MeasuredThroughput& row, bool first_token) {
    return first_token ? row.ttft_s : row.tpot_s;
}

/// The rows that have a latency, by load.
inline std::vector<MeasuredThroughput> rows_with(std::vector<MeasuredThroughput> rows, bool first_token) {
    std::erase_if(rows, [&](const MeasuredThroughput& row) { return !latency_of(row, first_token); });
    std::sort(rows.begin(), rows.end(),
              [](const auto& a, const auto& b) { return a.requests_per_s < b.requests_per_s; });
    return rows;
}

/// Requests/s within a target by measured latencies, linear between loads; nothing where its latency was not measured.
/// Below the lowest load nothing is known: where that misses the target, it is 0.
/// @param rows of one deployment and workload
inline std::optional<double> measured_capacity(const std::vector<MeasuredThroughput>& rows,
                                               const LatencyTarget& target) {
    const auto known = rows_with(rows, target.first_token);
    if (known.empty()) return std::nullopt;
    const auto value = [&](std::size_t i) { return *latency_of(known[i], target.first_token); };
    for (std::size_t i = 0; i < known.size(); ++i) {
        if (value(i) <= target.seconds) continue;
        if (i == 0) return 0.0;
        const double part = (target.seconds - value(i - 1)) / (value(i) - value(i - 1));
        return known[i - 1].requests_per_s + part * (known[i].requests_per_s - known[i - 1].requests_per_s);
    }
    return known.back().requests_per_s;
}

/// What measured latencies say of targets, and the targets of which they say nothing.
struct MeasuredTargets {
    double capacity =
        std::numeric_limits<double>::infinity();  ///< requests/s within those that were measured
    std::vector<LatencyTarget> unmeasured{};
};
inline MeasuredTargets measured_targets(const std::vector<MeasuredThroughput>& rows,
                                        const std::vector<LatencyTarget>& targets) {
    MeasuredTargets found;
    for (const auto& target : targets)
        if (const auto known = measured_capacity(rows, target))
            found.capacity = std::min(found.capacity, *known);
        else
            found.unmeasured.push_back(target);
    return found;
}

/// Whether a replica keeps the targets at some load, by measured latencies where there are any, else by those of an idle one.
inline bool can_keep(const std::vector<MeasuredThroughput>& rows, const KindTimes& times,
                     const std::vector<LatencyTarget>& targets) {
    const auto known = measured_targets(rows, targets);
    return known.capacity > 0 && idle_keeps(times, known.unmeasured);
}

/// The measured latency at a load, linear between the loads of the rows and that of the nearest row beyond them; nothing where
/// it was not measured.
/// @param rows of one deployment and workload
inline std::optional<double> latency_at(const std::vector<MeasuredThroughput>& rows, bool first_token,
                                        double load) {
    const auto known = rows_with(rows, first_token);
    if (known.empty()) return std::nullopt;
    const auto value = [&](std::size_t i) { return *latency_of(known[i], first_token); };
    for (std::size_t i = 0; i < known.size(); ++i) {
        if (load > known[i].requests_per_s) continue;
        if (i == 0) return value(0);
        const double part =
            (load - known[i - 1].requests_per_s) / (known[i].requests_per_s - known[i - 1].requests_per_s);
        return value(i - 1) + part * (value(i) - value(i - 1));
    }
    return value(known.size() - 1);
}

/// The source of latencies that are simulated with a throughput of this one.
inline Source simulated_source(Source throughput) {
    return throughput == Source::measured ? Source::calibrated : throughput;
}

/// Times between arrivals of a Poisson process of one request per second.
inline std::vector<double> poisson_spacing(int requests) {
    std::vector<double> spacing;
    Rng rng(1);
    for (int i = 0; i < requests; ++i) spacing.push_back(-std::log1p(-rng.uniform()));
    return spacing;
}

}  // namespace gpusched::serving::detail
