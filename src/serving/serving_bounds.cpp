// SPDX-License-Identifier: Apache-2.0
#include "serving/serving_builder.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpusched::serving {

GPUSCHED_EXPORT milp::Model serving_bound(const ServingProblem& problem) {
    validate(problem);
    detail::ServingBuilder b(problem, "serving bound");
    auto& m = b.model;
    const int T = m.column("T", 0, milp::infinity, 1);
    auto x = detail::serving_shares(b);
    milp::IndexMap v("v", {b.C});
    for (int c = 0; c < b.C; ++c) v(c) = m.column(b.call("v", b.config(c)), 0, milp::infinity);
    b.coverage(x, b.C);
    for (int c = 0; c < b.C; ++c) {
        b.entries.assign(1, {v(c), -1});
        for (int w = 0; w < b.W; ++w)
            if (x(c, w) >= 0) b.entries.push_back({x(c, w), b.busy(c, w)});
        m.at_most("time", b.call("time", b.config(c)), b.entries, 0);
        b.entries = {{v(c), 1}, {T, -static_cast<double>(b.copies(c))}};
        m.at_most("copies", b.call("copies", b.config(c)), b.entries, 0);
    }
    b.resources(
        "surrogate",
        [&](int c, double weight) {
            b.entries.push_back({v(c), weight});
        },
        T);
    m.add_index(std::move(x));
    m.add_index(std::move(v));
    return m.finish();
}

GPUSCHED_EXPORT ServingMilp serving_routing(const ServingProblem& problem, const std::vector<int>& replicas) {
    validate(problem);
    if (replicas.size() != problem.configurations.size())
        throw InvalidInput(bad_value("entries of replicas", std::to_string(replicas.size()),
                                     std::to_string(problem.configurations.size())));
    for (const int count : replicas)
        if (count < 0) throw InvalidInput(bad_value("replicas", std::to_string(count), "at least 0"));
    detail::ServingBuilder b(problem, "serving routing");
    auto& m = b.model;
    const int T = m.column("T", 0, milp::infinity, 1);
    milp::IndexMap x("x", {b.C, b.W});
    const auto count = [&](int c) { return replicas[static_cast<std::size_t>(c)]; };
    for (int c = 0; c < b.C; ++c)
        for (int w = 0; w < b.W; ++w)
            if (count(c) > 0 && b.busy(c, w) > 0)
                x(c, w) = m.column(b.call("x", b.config(c), b.workload(w)), 0, 1);
    b.coverage(x, b.C);
    for (int c = 0; c < b.C; ++c) {
        if (count(c) == 0) continue;
        b.entries.assign(1, {T, -static_cast<double>(count(c))});
        for (int w = 0; w < b.W; ++w)
            if (x(c, w) >= 0) b.entries.push_back({x(c, w), b.busy(c, w)});
        m.at_most("time", b.call("time", b.config(c)), b.entries, 0);
    }
    m.add_index(std::move(x));
    auto result = b.finish(ServingForm::fixed_makespan, T);
    result.upper.assign(replicas.begin(), replicas.end());
    return result;
}

GPUSCHED_EXPORT double slowest_makespan(const ServingProblem& problem) {
    double sum = 0;
    for (std::size_t w = 0; w < problem.workloads.size(); ++w) {
        double slowest = 0;
        for (const auto& c : problem.configurations)
            if (c.throughput[w] > 0)
                slowest = std::max(slowest, problem.workloads[w].requests / c.throughput[w]);
        sum += slowest;
    }
    return sum;
}

GPUSCHED_EXPORT double closed_form_bound(const ServingProblem& problem) {
    validate(problem);
    const auto costs = configuration_costs(problem);
    const auto most = most_replicas(problem);
    const auto N = problem.gpus.size();
    double best = 0;
    // A price for money and for each type; all there is, at these prices, bounds the work done per second.
    const auto with_prices = [&](double money, const std::vector<double>& gpu) {
        double have = money * problem.budget;
        for (std::size_t n = 0; n < N; ++n) have += gpu[n] * problem.gpus[n].available;
        if (have <= 0) return;
        double need = 0;
        for (std::size_t w = 0; w < problem.workloads.size(); ++w) {
            double least = milp::infinity;
            for (std::size_t c = 0; c < costs.size(); ++c) {
                const auto& config = problem.configurations[c];
                if (config.throughput[w] <= 0 || most[c] == 0) continue;
                double price = money * costs[c];
                for (std::size_t n = 0; n < N; ++n) price += gpu[n] * config.gpus[n];
                least = std::min(least, price / config.throughput[w]);
            }
            if (problem.workloads[w].requests > 0) need += problem.workloads[w].requests * least;
        }
        best = std::max(best, need / have);
    };
    const std::vector<double> none(N, 0.0);
    with_prices(1, none);
    with_prices(0, std::vector<double>(N, 1.0));
    std::vector<double> market;
    for (const auto& gpu : problem.gpus) market.push_back(gpu.price);
    with_prices(0, market);
    for (std::size_t n = 0; n < N; ++n) {
        auto one = none;
        one[n] = 1;
        with_prices(0, one);
    }
    for (std::size_t w = 0; w < problem.workloads.size(); ++w) {
        if (problem.workloads[w].requests <= 0) continue;
        double rate = 0;
        for (std::size_t c = 0; c < costs.size(); ++c)
            rate += most[c] * problem.configurations[c].throughput[w];
        best = std::max(best, problem.workloads[w].requests / rate);
    }
    return best;
}

}  // namespace gpusched::serving
