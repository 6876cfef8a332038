// SPDX-License-Identifier: Apache-2.0
// Latency simulation: routes random arrivals to replicas, and collects percentiles.
#include "serving/batching_replica.hpp"

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
    require_range("percent", percent, 0.0, 100.0);
    return detail::percentile_of(latency, percent);
}
GPUSCHED_EXPORT double KindLatency::ttft_percentile(double percent) const {
    require_range("percent", percent, 0.0, 100.0);
    return detail::percentile_of(ttft, percent);
}
GPUSCHED_EXPORT double KindLatency::tpot_percentile(double percent) const {
    require_range("percent", percent, 0.0, 100.0);
    return detail::percentile_of(tpot, percent);
}
GPUSCHED_EXPORT double KindLatency::percentile(double percent) const {
    require_range("percent", percent, 0.0, 100.0);
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

GPUSCHED_EXPORT LatencyResult simulate_latency(const ServingRequest& request,
                                               const std::vector<PlannedReplicas>& plan,
                                               const LatencyOptions& options) {
    validate(request);
    validate(options.estimate);
    Problems problems;
    if (options.rate != 0) check_range(problems, "rate", options.rate, 1e-9, 1e12);
    check_fields(problems, options);
    problems.throw_if_any();

    struct Kind {
        double requests;
        std::vector<std::pair<double, std::size_t>> to;  // cumulative share, index in the plan
    };
    std::vector<Kind> kinds;
    LatencyResult result;
    std::vector<std::vector<detail::KindTimes>> times(plan.size());  // [index in the plan][kind]
    double all = 0;
    const bool rates = request.has_rates();
    auto one = options.estimate;
    one.max_batch = 1;
    for (const auto& served : request.models)
        for (std::size_t d = 0; d < served.workloads.size(); ++d) {
            const auto& workload = served.workloads[d];
            const double many = rates ? workload.rate : workload.requests;
            if (many <= 0) continue;
            Kind kind{many, {}};
            result.kinds.push_back({served.model.name, workload.name, {}, {}, {}});
            for (auto& known : times) known.emplace_back();
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
                                                          workload.shape, options.estimate);
                const auto alone =
                    estimate_throughput(served.model, request.gpus, plan[r].deployment, workload.shape, one);
                const bool known =
                    // Measured, so it holds a request.
                    d < plan[r].source.size() && plan[r].source[d] == Source::measured;
                if (plan[r].count < 1 || !(rate > 0) || !(estimate.batch >= 1 || known))
                    throw InvalidInput(owner + ": cannot serve workload " + gpusched::quoted(workload.name));
                share += plan[r].share[d];
                kind.to.emplace_back(share, r);
                times[r].back() = detail::kind_times(alone, estimate, workload.shape.output, rate);
            }
            if (std::abs(share - 1) > 1e-6)
                throw InvalidInput(bad_value("shares of workload " + gpusched::quoted(workload.name),
                                             number_text(share), "1 in all"));
            all += kind.requests;
            kinds.push_back(std::move(kind));
        }
    if (kinds.empty()) return result;

    std::vector<std::vector<std::vector<detail::Job>>> queues;
    std::vector<std::size_t> turn(plan.size(), 0);
    for (const auto& replicas : plan)
        queues.emplace_back(static_cast<std::size_t>(std::max(replicas.count, 1)));
    Rng rng(options.seed);
    double now = 0;
    const double arrive = options.rate > 0 || !rates ? options.rate : all;
    for (int i = 0; i < options.requests; ++i) {
        if (arrive > 0 && i > 0) now -= std::log1p(-rng.uniform()) / arrive;
        double pick = rng.uniform() * all;
        std::size_t k = 0;
        while (k + 1 < kinds.size() && pick >= kinds[k].requests) pick -= kinds[k++].requests;
        const auto& kind = kinds[k];
        const double where = rng.uniform() * kind.to.back().first;
        std::size_t t = 0;
        while (t + 1 < kind.to.size() && where >= kind.to[t].first) ++t;
        const auto r = kind.to[t].second;
        queues[r][turn[r]++ % queues[r].size()].push_back({now, k});
    }
    const double counted = options.warm_up * now;
    for (std::size_t r = 0; r < queues.size(); ++r)
        for (const auto& jobs : queues[r]) {
            const auto found = detail::BatchingReplica(times[r]).run(jobs);
            for (std::size_t j = 0; j < jobs.size(); ++j) {
                result.makespan = std::max(result.makespan, jobs[j].arrival + found[j].all);
                if (jobs[j].arrival < counted) continue;
                auto& kind = result.kinds[jobs[j].kind];
                result.latency.push_back(found[j].all);
                kind.latency.push_back(found[j].all);
                kind.ttft.push_back(found[j].first);
                if (const double steps = times[r][jobs[j].kind].steps; steps > 0)
                    kind.tpot.push_back((found[j].all - found[j].first) / steps);
            }
        }
    for (auto& kind : result.kinds)
        for (auto* values : {&kind.latency, &kind.ttft, &kind.tpot})
            std::sort(values->begin(), values->end());
    std::sort(result.latency.begin(), result.latency.end());
    return result;
}

}  // namespace gpusched::serving
