#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/serving/detail/instance.hpp>
#include <gpusched/serving/simulate_latency.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace gpusched::serving {

GPUSCHED_INLINE double LatencyResult::percentile(double percent) const {
    require_range("percent", percent, 0.0, 100.0);
    if (latency.empty()) return 0;
    const auto n = static_cast<double>(latency.size());
    const auto rank = static_cast<std::size_t>(std::max(1.0, std::ceil(percent / 100 * n - 1e-9)));
    return latency[rank - 1];
}

namespace detail {

/// A request on its replica.
struct Job {
    double arrival;
    double alone;  ///< seconds where nothing else runs
    double load;   ///< part of the replica it takes at full speed
    double most;   ///< requests of its kind that may run together
};

/// One replica, whose running requests all progress at the same speed.
class SharedReplica {
  public:
    /// Seconds from arrival to end of each.
    /// @param jobs by arrival
    std::vector<double> run(const std::vector<Job>& jobs) {
        std::vector<double> latency(jobs.size());
        std::size_t next = 0;
        double start = 0;  // times count from here, so that late ones lose no digits
        while (next < jobs.size() || !running_.empty() || !waiting_.empty()) {
            if (running_.empty() && waiting_.empty()) {
                start = jobs[next].arrival;
                now_ = progress_ = 0;
            }
            const double arrival = next < jobs.size() ? jobs[next].arrival - start : infinity;
            const double finish =
                running_.empty() ? infinity : now_ + (running_.top().first - progress_) / speed();
            if (finish <= arrival) {
                const auto [end, job] = running_.top();
                running_.pop();
                now_ = finish;
                progress_ = end;
                latency[job] = finish - (jobs[job].arrival - start);
                load_ -= jobs[job].load;
                room_ -= 1 / jobs[job].most;
                if (running_.empty()) load_ = room_ = 0;  // no rounding is carried along
            } else {
                if (!running_.empty()) progress_ += (arrival - now_) * speed();
                now_ = arrival;
                waiting_.push_back(next++);
            }
            while (!waiting_.empty()) {
                const auto& job = jobs[waiting_.front()];
                if (!running_.empty() && room_ + 1 / job.most > 1 + 1e-9) break;
                room_ += 1 / job.most;
                load_ += job.load;
                running_.emplace(progress_ + job.alone, waiting_.front());
                waiting_.pop_front();
            }
        }
        return latency;
    }

  private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    [[nodiscard]] double speed() const { return std::min(1.0, 1 / load_); }

    using Running = std::pair<double, std::size_t>;
    std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;  // by progress at the end
    std::deque<std::size_t> waiting_;
    double now_ = 0, progress_ = 0, load_ = 0, room_ = 0;
};

}  // namespace detail

GPUSCHED_INLINE LatencyResult simulate_latency(const ServingRequest& request,
                                               const std::vector<PlannedReplicas>& plan,
                                               const LatencyOptions& options) {
    validate(request);
    validate(options.estimate);
    Problems problems;
    if (options.rate != 0) check_range(problems, "rate", options.rate, 1e-9, 1e12);
    detail::check_memory_fraction(problems, options.estimate, options.memory_fraction);
    check_fields(problems, options);
    problems.throw_if_any();

    struct Kind {
        double requests;
        std::vector<std::pair<double, std::size_t>> to;  // cumulated share, place in the plan
        std::vector<detail::Job> jobs;                   // by place in `to`
    };
    std::vector<Kind> kinds;
    double all = 0;
    auto together = options.estimate;
    together.memory_fraction = options.memory_fraction;
    auto one = together;
    one.max_batch = 1;
    for (const auto& served : request.models)
        for (std::size_t d = 0; d < served.workloads.size(); ++d) {
            const auto& workload = served.workloads[d];
            if (workload.requests <= 0) continue;
            Kind kind{workload.requests, {}, {}};
            double share = 0;
            for (std::size_t r = 0; r < plan.size(); ++r) {
                if (plan[r].model != served.model.name) continue;
                const auto owner = "replicas " + gpusched::quoted(plan[r].deployment.name);
                if (plan[r].share.size() != served.workloads.size() ||
                    plan[r].requests_per_s.size() != served.workloads.size())
                    throw InvalidInput(
                        owner + ": expected a share and a throughput for each of the model's workloads");
                if (plan[r].share[d] <= 1e-12) continue;
                const double rate = plan[r].requests_per_s[d];
                const auto estimate = estimate_throughput(served.model, request.gpus, plan[r].deployment,
                                                          workload.shape, together);
                const auto alone =
                    estimate_throughput(served.model, request.gpus, plan[r].deployment, workload.shape, one);
                if (plan[r].count < 1 || !(rate > 0) || !(estimate.batch >= 1))
                    throw InvalidInput(owner + ": cannot serve workload " + gpusched::quoted(workload.name));
                share += plan[r].share[d];
                // Measured throughputs may be higher than a request alone is fast.
                const double latency =
                    std::max(alone.first_token_s + (workload.shape.output - 1) * alone.step_s, 1e-12);
                kind.to.emplace_back(share, r);
                kind.jobs.push_back({0, latency, 1 / rate / latency, estimate.batch});
            }
            if (std::abs(share - 1) > 1e-6)
                throw InvalidInput(bad_value("shares of workload " + gpusched::quoted(workload.name),
                                             number_text(share), "1 in all"));
            all += kind.requests;
            kinds.push_back(std::move(kind));
        }
    LatencyResult result;
    if (kinds.empty()) return result;

    std::vector<std::vector<std::vector<detail::Job>>> queues;
    std::vector<std::size_t> turn(plan.size(), 0);
    for (const auto& replicas : plan)
        queues.emplace_back(static_cast<std::size_t>(std::max(replicas.count, 1)));
    Rng rng(options.seed);
    double now = 0;
    for (int i = 0; i < options.requests; ++i) {
        if (options.rate > 0 && i > 0) now -= std::log1p(-rng.uniform()) / options.rate;
        double pick = rng.uniform() * all;
        std::size_t k = 0;
        while (k + 1 < kinds.size() && pick >= kinds[k].requests) pick -= kinds[k++].requests;
        const auto& kind = kinds[k];
        const double where = rng.uniform() * kind.to.back().first;
        std::size_t t = 0;
        while (t + 1 < kind.to.size() && where >= kind.to[t].first) ++t;
        const auto r = kind.to[t].second;
        auto job = kind.jobs[t];
        job.arrival = now;
        queues[r][turn[r]++ % queues[r].size()].push_back(job);
    }
    for (const auto& replicas : queues)
        for (const auto& jobs : replicas) {
            const auto latency = detail::SharedReplica().run(jobs);
            for (std::size_t j = 0; j < jobs.size(); ++j) {
                result.latency.push_back(latency[j]);
                result.makespan = std::max(result.makespan, jobs[j].arrival + latency[j]);
            }
        }
    std::sort(result.latency.begin(), result.latency.end());
    return result;
}

}  // namespace gpusched::serving
