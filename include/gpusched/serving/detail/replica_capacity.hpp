// What one replica serves of one kind of requests within targets: read from measured latencies, or simulated.
#pragma once

#include <gpusched/core/rng.hpp>
#include <gpusched/serving/detail/batching_replica.hpp>
#include <gpusched/serving/latency_targets.hpp>
#include <gpusched/serving/measurements.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace GPUSCHED_NAMESPACE::serving::detail {

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

/// Requests/s within the targets by measured latencies, linear between loads; nothing where a target's latency was not
/// measured. Below the lowest load nothing is known: where that misses a target, it is 0.
/// @param rows of one deployment and workload
inline std::optional<double> measured_capacity(std::vector<MeasuredThroughput> rows,
                                               const std::vector<LatencyTarget>& targets) {
    std::erase_if(rows, [&](const MeasuredThroughput& row) {
        return std::any_of(targets.begin(), targets.end(), [&](const LatencyTarget& target) {
            return target.first_token ? !row.ttft_s : !row.tpot_s;
        });
    });
    if (rows.empty() || targets.empty()) return std::nullopt;
    std::sort(rows.begin(), rows.end(),
              [](const auto& a, const auto& b) { return a.requests_per_s < b.requests_per_s; });
    double most = rows.back().requests_per_s;
    for (const auto& target : targets) {
        const auto value = [&](const MeasuredThroughput& row) {
            return target.first_token ? *row.ttft_s : *row.tpot_s;
        };
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (value(rows[i]) <= target.seconds) continue;
            if (i == 0) return 0.0;
            const double part = (target.seconds - value(rows[i - 1])) / (value(rows[i]) - value(rows[i - 1]));
            most = std::min(most, rows[i - 1].requests_per_s +
                                      part * (rows[i].requests_per_s - rows[i - 1].requests_per_s));
            break;
        }
    }
    return most;
}

/// The measured latency at a load, linear between the loads of the rows and that of the nearest row beyond them.
/// @param rows of one deployment and workload; those without this latency do not count
inline double latency_at(std::vector<MeasuredThroughput> rows, bool first_token, double load) {
    const auto value = [&](const MeasuredThroughput& row) { return first_token ? row.ttft_s : row.tpot_s; };
    std::erase_if(rows, [&](const MeasuredThroughput& row) { return !value(row); });
    if (rows.empty()) return 0;
    std::sort(rows.begin(), rows.end(),
              [](const auto& a, const auto& b) { return a.requests_per_s < b.requests_per_s; });
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (load > rows[i].requests_per_s) continue;
        if (i == 0) return *value(rows[0]);
        const double part =
            (load - rows[i - 1].requests_per_s) / (rows[i].requests_per_s - rows[i - 1].requests_per_s);
        return *value(rows[i - 1]) + part * (*value(rows[i]) - *value(rows[i - 1]));
    }
    return *value(rows.back());
}

/// Times between arrivals of a Poisson process of one request per second.
inline std::vector<double> poisson_spacing(int requests) {
    std::vector<double> spacing;
    Rng rng(1);
    for (int i = 0; i < requests; ++i) spacing.push_back(-std::log1p(-rng.uniform()));
    return spacing;
}

}  // namespace GPUSCHED_NAMESPACE::serving::detail
