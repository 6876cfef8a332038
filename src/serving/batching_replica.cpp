// SPDX-License-Identifier: Apache-2.0
// One replica with continuous batching: the simulation, and the capacity within targets, measured or
// simulated.
#include "serving/batching_replica.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/rng.hpp>

#include <algorithm>
#include <cmath>

namespace gpusched::serving::detail {

KindTimes kind_times(const ThroughputEstimate& one, const ThroughputEstimate& full, int output, double rate) {
    const double steps = output - 1.0;
    if (full.batch < 1) return {1 / rate, 0, 0, 0, 1, steps};  // measured, although no estimate is possible
    const double stretch = 1 / rate / (full.prefill_s + steps * full.step_s / full.batch);
    KindTimes t;
    t.prefill_s = stretch * full.prefill_s;
    t.lag_s = stretch * std::max(0.0, one.first_token_s - full.prefill_s);
    t.more_s = full.batch > 1 ? stretch * std::max(0.0, full.step_s - one.step_s) / (full.batch - 1) : 0;
    t.step_s = stretch * one.step_s;
    t.most = full.batch;
    t.steps = steps;
    return t;
}

// Exported for its test.
GPUSCHED_EXPORT std::vector<JobTimes> BatchingReplica::run(const std::vector<Job>& jobs) {
    std::vector<JobTimes> times(jobs.size());
    constexpr double infinity = std::numeric_limits<double>::infinity();
    std::size_t next = 0;
    double start = 0, now = 0;  // times count from `start`, so that late ones lose no digits
    while (next < jobs.size() || !running_.empty() || !waiting_.empty()) {
        if (running_.empty() && waiting_.empty() && jobs[next].arrival - start > now) {
            start = jobs[next].arrival;
            now = 0;
            step_ = 0;
        }
        while (next < jobs.size() && jobs[next].arrival - start <= now) waiting_.push_back(next++);
        if (!waiting_.empty() && fits(jobs[waiting_.front()].kind)) {
            const auto job = waiting_.front();
            waiting_.pop_front();
            const auto& kind = kinds_[jobs[job].kind];
            now += kind.prefill_s;
            times[job].first = now - (jobs[job].arrival - start) + kind.lag_s;
            times[job].all = times[job].first;
            if (kind.steps > 0) admit(jobs[job].kind, job);
            continue;
        }
        const double arrival = next < jobs.size() && waiting_.empty() ? jobs[next].arrival - start : infinity;
        const double each = step();
        double steps = running_.top().first - step_;
        if (arrival < now + steps * each) steps = std::max(1.0, std::ceil((arrival - now) / each));
        step_ += steps;
        now += steps * each;
        while (!running_.empty() && running_.top().first <= step_) {
            const auto job = running_.top().second;
            running_.pop();
            leave(jobs[job].kind);
            times[job].all = now - (jobs[job].arrival - start) + kinds_[jobs[job].kind].lag_s;
        }
    }
    return times;
}

bool BatchingReplica::fits(std::size_t kind) const {
    return running_.empty() || room_ + 1 / kinds_[kind].most <= 1 + 1e-9;
}

double BatchingReplica::step() const {
    const auto n = static_cast<double>(running_.size());
    return alone_ / n + more_ * (1 - 1 / n);
}

void BatchingReplica::admit(std::size_t kind, std::size_t job) {
    const auto& k = kinds_[kind];
    running_.emplace(step_ + k.steps, job);
    alone_ += k.step_s;
    more_ += k.more_s;
    room_ += 1 / k.most;
}

void BatchingReplica::leave(std::size_t kind) {
    const auto& k = kinds_[kind];
    alone_ -= k.step_s;
    more_ -= k.more_s;
    room_ -= 1 / k.most;
    if (running_.empty()) alone_ = more_ = room_ = 0;  // drops rounding errors
}

double percentile_of(const std::vector<double>& sorted, double percent) {
    require_range("percent", percent, 0.0, 100.0);
    if (sorted.empty()) return 0;
    const auto n = static_cast<double>(sorted.size());
    return sorted[static_cast<std::size_t>(std::max(1.0, std::ceil(percent / 100 * n - 1e-9))) - 1];
}

std::vector<LatencyTarget> list_of(const LatencyTargets& targets) {
    std::vector<LatencyTarget> all;
    for (const auto& percentile : latency_percentiles)
        if (const auto& seconds = targets.*percentile.target) all.push_back({percentile, *seconds});
    return all;
}

void LatencySamples::add(const JobTimes& times, double steps) {
    seconds_[0].push_back(times.first);
    if (steps > 0) seconds_[1].push_back((times.all - times.first) / steps);
    seconds_[2].push_back(times.all);
}

bool LatencySamples::meet(const std::vector<LatencyTarget>& targets) {
    for (auto& each : seconds_) std::sort(each.begin(), each.end());
    return std::all_of(targets.begin(), targets.end(), [&](const LatencyTarget& target) {
        return percentile_of(seconds_[static_cast<std::size_t>(target.time)], target.percent) <=
               target.seconds;
    });
}

std::vector<MeasuredThroughput> rows_with(std::vector<MeasuredThroughput> rows, TokenTime time) {
    std::erase_if(rows, [&](const MeasuredThroughput& row) { return !latency_of(row, time); });
    std::sort(rows.begin(), rows.end(),
              [](const auto& a, const auto& b) { return a.requests_per_s < b.requests_per_s; });
    return rows;
}

/// Requests/s within a target by measured latencies, linear between loads; none without measurements. Nothing
/// is known below the lowest load: if it misses the target, the result is 0.
static std::optional<double> measured_capacity(const std::vector<MeasuredThroughput>& rows,
                                               const LatencyTarget& target) {
    const auto known = rows_with(rows, target.time);
    if (known.empty()) return std::nullopt;
    const auto value = [&](std::size_t i) { return *latency_of(known[i], target.time); };
    for (std::size_t i = 0; i < known.size(); ++i) {
        if (value(i) <= target.seconds) continue;
        if (i == 0) return 0.0;
        const double part = (target.seconds - value(i - 1)) / (value(i) - value(i - 1));
        return known[i - 1].requests_per_s + part * (known[i].requests_per_s - known[i - 1].requests_per_s);
    }
    return known.back().requests_per_s;
}

MeasuredTargets measured_targets(const std::vector<MeasuredThroughput>& rows,
                                 const std::vector<LatencyTarget>& targets) {
    MeasuredTargets found;
    for (const auto& target : targets)
        if (const auto known = measured_capacity(rows, target))
            found.capacity = std::min(found.capacity, *known);
        else
            found.unmeasured.push_back(target);
    return found;
}

bool can_keep(const std::vector<MeasuredThroughput>& rows, const IdleLatency& idle,
              const std::vector<LatencyTarget>& targets) {
    const auto known = measured_targets(rows, targets);
    return known.capacity > 0 &&
           std::all_of(known.unmeasured.begin(), known.unmeasured.end(),
                       [&](const LatencyTarget& target) { return idle(target) <= target.seconds; });
}

std::optional<double> latency_at(const std::vector<MeasuredThroughput>& rows, TokenTime time, double load) {
    const auto known = rows_with(rows, time);
    if (known.empty()) return std::nullopt;
    const auto value = [&](std::size_t i) { return *latency_of(known[i], time); };
    for (std::size_t i = 0; i < known.size(); ++i) {
        if (load > known[i].requests_per_s) continue;
        if (i == 0) return value(0);
        const double part =
            (load - known[i - 1].requests_per_s) / (known[i].requests_per_s - known[i - 1].requests_per_s);
        return value(i - 1) + part * (value(i) - value(i - 1));
    }
    return value(known.size() - 1);
}

/// Whether a replica meets the targets at a load, by simulation.
static bool keeps(const std::vector<KindTimes>& times, const std::vector<LatencyTarget>& targets, double load,
                  const std::vector<double>& spacing, const std::vector<std::size_t>& kinds) {
    std::vector<Job> jobs;
    jobs.reserve(spacing.size());
    double now = 0;
    for (std::size_t j = 0; j < spacing.size(); ++j) jobs.push_back({now += spacing[j] / load, kinds[j]});
    const auto found = BatchingReplica(times).run(jobs);
    LatencySamples samples;
    for (std::size_t j = jobs.size() / 5; j < jobs.size(); ++j)  // the first fifth fills the replica
        samples.add(found[j], times[jobs[j].kind].steps);
    return samples.meet(targets);
}

double simulated_capacity(const std::vector<KindTimes>& times, const std::vector<LatencyTarget>& targets,
                          double limit, const std::vector<double>& spacing,
                          const std::vector<std::size_t>& kinds, const std::function<bool()>& stop) {
    if (targets.empty() || keeps(times, targets, limit, spacing, kinds)) return limit;
    double low = 0, high = limit;
    for (int i = 0; i < 7 && !stop(); ++i) {
        const double middle = (low + high) / 2;
        (keeps(times, targets, middle, spacing, kinds) ? low : high) = middle;
    }
    return low;
}

std::vector<double> poisson_spacing(int requests) {
    std::vector<double> spacing;
    Rng rng(1);
    for (int i = 0; i < requests; ++i) spacing.push_back(-std::log1p(-rng.uniform()));
    return spacing;
}

}  // namespace gpusched::serving::detail
