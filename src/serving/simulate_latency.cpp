// SPDX-License-Identifier: Apache-2.0
// Latency simulation: routes random arrivals to replicas, and collects percentiles.
#include "serving/workload_times.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/serving/simulate_latency.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving {

GPUSCHED_EXPORT double LatencyResult::percentile(double percent) const {
    return detail::percentile_of(latency, percent);
}
GPUSCHED_EXPORT double KindLatency::ttft_percentile(double percent) const {
    return detail::percentile_of(ttft, percent);
}
GPUSCHED_EXPORT double KindLatency::tpot_percentile(double percent) const {
    return detail::percentile_of(tpot, percent);
}
GPUSCHED_EXPORT double KindLatency::percentile(double percent) const {
    return detail::percentile_of(latency, percent);
}

GPUSCHED_EXPORT std::string latency_table(const LatencyResult& result) {
    std::vector<std::vector<std::string>> rows{{"model", "workload", "requests", "ttft_p50_s", "ttft_p90_s",
                                                "ttft_p99_s", "tpot_p50_s", "tpot_p90_s", "tpot_p99_s",
                                                "latency_p90_s"}};
    for (const auto& kind : result.kinds) {
        std::vector<std::string> row{kind.model, kind.workload, std::to_string(kind.latency.size())};
        const auto add = [&](const std::vector<double>& values, double percent) {
            std::array<char, 32> text{};
            std::snprintf(text.data(), text.size(), "%.4g", detail::percentile_of(values, percent));
            row.emplace_back(values.empty() ? "-" : text.data());
        };
        for (const auto* values : {&kind.ttft, &kind.tpot})
            for (const double percent : {50.0, 90.0, 99.0}) add(*values, percent);
        add(kind.latency, 90);
        rows.push_back(std::move(row));
    }
    std::vector<std::size_t> widths(rows.front().size(), 0);
    for (const auto& row : rows)
        for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    std::string text;
    for (const auto& row : rows) {
        for (std::size_t c = 0; c < row.size(); ++c) {
            const std::string space(widths[c] - row[c].size(), ' ');
            text += (c > 0 ? "  " : "") + (c < 2 ? row[c] + space : space + row[c]);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        text += '\n';
    }
    return text;
}

namespace detail {

constexpr double least_share = 1e-12;  ///< smaller shares of a plan are rounding errors

/// One kind of requests of a plan.
struct PlannedKind {
    std::size_t workload;  ///< index among the workloads of all models
    const ServingWorkload* source;
    double requests;                                 ///< number or rate
    std::vector<std::pair<double, std::size_t>> to;  ///< cumulative share, index in the plan
};

/// The times of each replica of a plan, for valid input.
/// @throws InvalidInput for replicas that cannot serve a workload of their plan
static std::vector<ReplicaTimes> times_of(const ServingRequest& request,
                                          const std::vector<PlannedReplicas>& plan,
                                          const std::vector<std::vector<RequestMix>>& mixes,
                                          const std::vector<Estimator>& estimators,
                                          const EstimateOptions& options) {
    std::vector<ReplicaTimes> times(plan.size());
    for (std::size_t i = 0; i < request.models.size(); ++i) {
        const auto& served = request.models[i];
        for (std::size_t d = 0; d < served.workloads.size(); ++d) {
            const auto& workload = served.workloads[d];
            const auto& mix = mixes[i][d];
            const bool any = workload.requests > 0 || workload.rate > 0;
            for (std::size_t r = 0; r < plan.size(); ++r) {
                const auto& replicas = plan[r];
                const auto owner = "replicas " + gpusched::quoted(replicas.deployment.name);
                const bool serves = any && replicas.model == served.model.name;
                if (serves && (replicas.share.size() != served.workloads.size() ||
                               replicas.requests_per_s.size() != served.workloads.size()))
                    throw InvalidInput(
                        owner + ": expected a share and a throughput for each of the model's workloads");
                if (!serves || replicas.share[d] <= least_share) {
                    times[r].add({});
                    continue;
                }
                const double rate = replicas.requests_per_s[d];
                const auto full = estimate_throughput(served.model, request.gpus, replicas.deployment,
                                                      mix.longest(), options);
                const bool measured = d < replicas.source.size() &&
                                      replicas.source[d] == Source::measured;  // so it holds a request
                if (replicas.count < 1 || !(rate > 0) || !(full.batch >= 1 || measured))
                    throw InvalidInput(owner + ": cannot serve workload " + gpusched::quoted(workload.name));
                times[r].add(WorkloadTimes(estimators[i], replicas.deployment, mix, rate));
            }
        }
    }
    return times;
}

/// The workloads with requests, and the replicas of a plan that serve them.
/// @param result gets the names of the kinds
static std::vector<PlannedKind> planned_kinds(const ServingRequest& request,
                                              const std::vector<PlannedReplicas>& plan,
                                              LatencyResult& result) {
    std::vector<PlannedKind> kinds;
    const bool rates = request.has_rates();
    std::size_t w = 0;
    for (const auto& served : request.models)
        for (std::size_t d = 0; d < served.workloads.size(); ++d, ++w) {
            const auto& workload = served.workloads[d];
            PlannedKind kind{w, &workload, rates ? workload.rate : workload.requests, {}};
            if (kind.requests <= 0) continue;
            result.kinds.push_back({served.model.name, workload.name, {}, {}, {}});
            double share = 0;
            for (std::size_t r = 0; r < plan.size(); ++r)
                if (plan[r].model == served.model.name && plan[r].share[d] > least_share) {
                    share += plan[r].share[d];
                    kind.to.emplace_back(share, r);
                }
            if (std::abs(share - 1) > 1e-6)
                throw InvalidInput(bad_value("shares of workload " + gpusched::quoted(workload.name),
                                             number_text(share), "1 in all"));
            kinds.push_back(std::move(kind));
        }
    return kinds;
}

LatencyResult simulate(const ServingRequest& request, const std::vector<PlannedReplicas>& plan,
                       const LatencyOptions& options, const std::vector<ReplicaTimes*>& times) {
    LatencyResult result;
    const auto kinds = planned_kinds(request, plan, result);
    if (kinds.empty()) return result;

    // The requests of each replica, by arrival.
    std::vector<std::vector<std::vector<Job>>> queues;
    std::vector<std::size_t> turn(plan.size(), 0);
    for (const auto& replicas : plan)
        queues.emplace_back(
            static_cast<std::size_t>(std::clamp(replicas.count, 1, std::max(options.requests, 1))));
    double all = 0;
    for (const auto& kind : kinds) all += kind.requests;
    Rng rng(options.seed);
    double now = 0;
    const double arrive = options.rate > 0 || !request.has_rates() ? options.rate : all;
    std::vector<Arrivals::Kind> arriving;
    for (const auto& kind : kinds) arriving.push_back({kind.source, kind.requests});
    Arrivals arrivals(arriving, arrive, rng);
    for (int i = 0; i < options.requests; ++i) {
        const auto arrival = arrivals.next(i == 0);
        now = arrival.time;
        const auto& kind = kinds[arrival.kind];
        const double part = rng.uniform() * kind.to.back().first;
        std::size_t t = 0;
        while (t + 1 < kind.to.size() && part >= kind.to[t].first) ++t;
        const auto r = kind.to[t].second;
        queues[r][turn[r]++ % queues[r].size()].push_back(
            {now, times[r]->draw(kind.workload, rng, arrival.lengths)});
    }
    std::vector<KindLatency*> of_workload(kinds.back().workload + 1);
    for (std::size_t k = 0; k < kinds.size(); ++k) of_workload[kinds[k].workload] = &result.kinds[k];
    const double counted = options.warm_up * now;
    for (std::size_t r = 0; r < queues.size(); ++r)
        for (const auto& jobs : queues[r]) {
            const auto found = BatchingReplica(times[r]->all()).run(jobs);
            for (std::size_t j = 0; j < jobs.size(); ++j) {
                result.makespan = std::max(result.makespan, jobs[j].arrival + found[j].all);
                if (jobs[j].arrival < counted) continue;
                auto& kind = *of_workload[times[r]->workload_of(jobs[j].kind)];
                result.latency.push_back(found[j].all);
                kind.latency.push_back(found[j].all);
                kind.ttft.push_back(found[j].first);
                if (const double steps = times[r]->all()[jobs[j].kind].steps; steps > 0)
                    kind.tpot.push_back((found[j].all - found[j].first) / steps);
            }
        }
    for (auto& kind : result.kinds)
        for (auto* values : {&kind.latency, &kind.ttft, &kind.tpot})
            std::sort(values->begin(), values->end());
    std::sort(result.latency.begin(), result.latency.end());
    return result;
}

}  // namespace detail

GPUSCHED_EXPORT LatencyResult simulate_latency(const ServingRequest& request,
                                               const std::vector<PlannedReplicas>& plan,
                                               const LatencyOptions& options) {
    validate(request);
    validate(options.estimate);
    Problems problems;
    if (options.rate != 0) check_range(problems, "rate", options.rate, 1e-9, 1e12);
    check_fields(problems, options);
    problems.throw_if_any();
    std::vector<std::vector<detail::RequestMix>> mixes;
    for (const auto& served : request.models)
        mixes.emplace_back(served.workloads.begin(), served.workloads.end());
    const auto estimators = detail::estimators_of(request, options.estimate);
    auto known = detail::times_of(request, plan, mixes, estimators, options.estimate);
    std::vector<detail::ReplicaTimes*> times;
    for (auto& each : known) times.push_back(&each);
    return detail::simulate(request, plan, options, times);
}

}  // namespace gpusched::serving
