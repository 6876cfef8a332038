// SPDX-License-Identifier: Apache-2.0
#include "serving/batching_replica.hpp"
// PlanLatencies: simulates a plan, and replaces simulated latencies by measured ones.
#include "serving/plan_latencies.hpp"

#include <gpusched/config.hpp>
#include <gpusched/serving/simulate_latency.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

bool PlanLatencies::simulate(ServingPlan& plan) const {
    if (!instance_.has_rates() || plan.rate <= 0) return true;
    for (std::uint64_t seed = 0; seed < (instance_.any_targets() ? simulations : 1); ++seed) {
        auto once = simulated_latencies(plan, seed);
        for (std::size_t i = 0; seed > 0 && i < once.size(); ++i)
            for (const auto& field : latency_percentiles) {
                auto& longest = once[i].*field.planned;
                longest = std::max(longest, plan.latencies[i].*field.planned);
            }
        plan.latencies = std::move(once);
        if (std::any_of(plan.latencies.begin(), plan.latencies.end(),
                        [](const PlannedLatency& latency) { return !latency.met; }))
            return false;
    }
    return true;
}

int PlanLatencies::simulated_requests() const {
    double least = 1;  // part of the rarest kind with targets in all requests
    for (std::size_t w = 0; w < instance_.kinds().size(); ++w)
        if (const double part = instance_.considered().problem.workloads[w].requests / instance_.total();
            part > 0 && !instance_.kinds()[w].targets.empty())
            least = std::min(least, part);
    const double enough = std::min(std::ceil(rare_requests / 0.8 / least), 1.0 * most_simulated);
    return std::max(instance_.options().simulated_requests, static_cast<int>(enough));
}

std::vector<PlannedLatency> PlanLatencies::simulated_latencies(const ServingPlan& plan,
                                                               std::uint64_t seed) const {
    const auto& kinds = instance_.kinds();
    const auto& workloads = instance_.considered().problem.workloads;
    LatencyOptions o{.rate = plan.rate, .requests = simulated_requests(), .seed = seed, .warm_up = 0.2};
    o.estimate = instance_.options().estimate;
    const auto found = simulate_latency(instance_.request(), plan.replicas, o);
    std::vector<PlannedLatency> latencies;
    for (const auto& kind : found.kinds) {
        std::size_t w = 0;
        while (workloads[w].model != kind.model || workloads[w].name != kind.workload) ++w;
        PlannedLatency latency{kind.model, kind.workload,
                               workloads[w].requests / instance_.total() * plan.rate};
        for (const auto& field : latency_percentiles)
            if (const auto& all = field.first_token ? kind.ttft : kind.tpot; !all.empty())
                latency.*field.planned = percentile_of(all, field.percent);
        std::vector<const PlannedReplicas*> serving;
        for (const auto& r : plan.replicas)
            if (r.model == kind.model && r.share[kinds[w].workload] > 0) serving.push_back(&r);
        for (const auto* r : serving) {
            if (kind.latency.empty()) set_idle(latency, *r, w);
            const auto source = simulated_source(r->source[kinds[w].workload]);
            latency.ttft_source = latency.tpot_source =
                r == serving.front() ? source : std::max(latency.ttft_source, source);
        }
        for (const bool first_token : {true, false}) set_measured(latency, serving, w, first_token);
        for (const auto& target : kinds[w].targets) {
            const auto& value = latency.*target.planned;
            latency.met = latency.met && (!value || *value <= target.seconds * (1 + 1e-9));
        }
        latencies.push_back(std::move(latency));
    }
    return latencies;
}

void PlanLatencies::set_measured(PlannedLatency& latency, const std::vector<const PlannedReplicas*>& serving,
                                 std::size_t w, bool first_token) const {
    const auto& kind = instance_.kinds()[w];
    if (serving.empty() ||
        std::none_of(kind.targets.begin(), kind.targets.end(),
                     [&](const LatencyTarget& target) { return target.first_token == first_token; }))
        return;
    double longest = 0;
    for (const auto* r : serving) {
        if (std::count_if(r->share.begin(), r->share.end(), [](double share) { return share > 0; }) > 1)
            return;
        const double load = r->share[kind.workload] * latency.rate / r->count;
        const auto value =
            latency_at(instance_.measured_rows(instance_.considered(), index_of(*r), w), first_token, load);
        if (!value) return;
        longest = std::max(longest, *value);
    }
    (first_token ? latency.ttft_source : latency.tpot_source) = Source::measured;
    for (const auto& field : latency_percentiles)
        if (field.first_token == first_token) latency.*field.planned = {};
    for (const auto& target : kind.targets) {
        if (target.first_token != first_token) continue;
        // A solver can overfill replicas within its tolerance.
        const bool rounded = longest > target.seconds && longest <= target.seconds * (1 + 1e-5);
        latency.*target.planned = rounded ? target.seconds : longest;
    }
}

void PlanLatencies::set_idle(PlannedLatency& latency, const PlannedReplicas& replicas, std::size_t w) const {
    const auto t = instance_.times(instance_.considered(), index_of(replicas), w);
    for (const auto& field : latency_percentiles) {
        if (!field.first_token && t.steps <= 0) continue;
        auto& value = latency.*field.planned;
        value = std::max(value.value_or(0), field.first_token ? t.prefill_s + t.lag_s : t.step_s);
    }
}

std::size_t PlanLatencies::index_of(const PlannedReplicas& replicas) const {
    const auto& considered = instance_.considered();
    std::size_t c = 0;
    while (considered.problem.configurations[c].model != replicas.model ||
           considered.deployments[c].name != replicas.deployment.name)
        ++c;
    return c;
}

}  // namespace gpusched::serving::detail
