// SPDX-License-Identifier: Apache-2.0
// One replica with continuous batching: prompts go first, requests that decode take their steps together.
#pragma once

#include <gpusched/serving/estimate.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

/// What requests of one kind take on a replica.
struct KindTimes {
    double prefill_s = 0;  ///< the replica does nothing else for so long
    double lag_s = 0;      ///< from there to the first token: the way through further stages
    double step_s = 0;     ///< a step of a request alone
    double more_s = 0;     ///< what each further request in flight adds to it
    double most = 1;       ///< requests of the kind that may be in flight together
    double steps = 0;      ///< tokens after the first one
};

/// The estimate with its times stretched so that a full replica serves `rate` requests per second.
/// @param one the estimate of a replica with one request in flight
/// @param full the estimate of one with as many as it holds
inline KindTimes kind_times(const ThroughputEstimate& one, const ThroughputEstimate& full, int output,
                            double rate) {
    const double steps = output - 1.0;
    if (full.batch < 1) return {1 / rate, 0, 0, 0, 1, steps};  // measured where nothing can be estimated
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

/// A request on its replica.
struct Job {
    double arrival;
    std::size_t kind;
};
struct JobTimes {
    double first = 0;  ///< seconds from arrival to the first token
    double all = 0;    ///< to the last one
};

/// A replica works on one prompt at a time, first come, first served, as soon as there is room for the request; meanwhile nobody
/// decodes. Otherwise all requests in flight take a step together, which takes
/// the mean of their steps alone, and `more_s` for each beyond one.
class BatchingReplica {
  public:
    explicit BatchingReplica(const std::vector<KindTimes>& kinds) : kinds_(kinds) {}

    /// @param jobs by arrival
    std::vector<JobTimes> run(const std::vector<Job>& jobs) {
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
            const double arrival =
                next < jobs.size() && waiting_.empty() ? jobs[next].arrival - start : infinity;
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

  private:
    [[nodiscard]] bool fits(std::size_t kind) const {
        return running_.empty() || room_ + 1 / kinds_[kind].most <= 1 + 1e-9;
    }
    [[nodiscard]] double step() const {
        const auto n = static_cast<double>(running_.size());
        return alone_ / n + more_ * (1 - 1 / n);
    }
    void admit(std::size_t kind, std::size_t job) {
        const auto& k = kinds_[kind];
        running_.emplace(step_ + k.steps, job);
        alone_ += k.step_s;
        more_ += k.more_s;
        room_ += 1 / k.most;
    }
    void leave(std::size_t kind) {
        const auto& k = kinds_[kind];
        alone_ -= k.step_s;
        more_ -= k.more_s;
        room_ -= 1 / k.most;
        if (running_.empty()) alone_ = more_ = room_ = 0;  // no rounding is carried along
    }

    using Running = std::pair<double, std::size_t>;  // the step at the end, the job
    const std::vector<KindTimes>& kinds_;
    std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
    std::deque<std::size_t> waiting_;
    double step_ = 0, alone_ = 0, more_ = 0, room_ = 0;
};

/// The smallest of these that so many per cent do not exceed; 0 where there are none.
/// @param sorted ascending
inline double percentile_of(const std::vector<double>& sorted, double percent) {
    if (sorted.empty()) return 0;
    const auto n = static_cast<double>(sorted.size());
    return sorted[static_cast<std::size_t>(std::max(1.0, std::ceil(percent / 100 * n - 1e-9))) - 1];
}

}  // namespace gpusched::serving::detail
