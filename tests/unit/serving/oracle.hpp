// SPDX-License-Identifier: Apache-2.0
// Small random planning problems, and all their plans by brute force.
#pragma once

#include "support/catch.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/serving/serving.hpp>

namespace testing_support {

using namespace gpusched;
using namespace gpusched::serving;

using milp::infinity;

/// One kind of requests per model, so that the best routing has a closed form: a model is done after f / sum y h.
struct Oracle {
    struct Option {
        std::size_t model;
        Deployment deployment;
        std::vector<int> gpus;
        double rate, cost;
    };
    std::vector<Option> options;
    const ServingRequest& request;
    std::vector<int> available;

    Oracle(const ServingRequest& r, const PlannerOptions& o, std::vector<int> there)
        : request(r), available(there) {
        for (std::size_t m = 0; m < r.models.size(); ++m)
            for (const auto& d : enumerate_deployments(r.models[m].model, r.gpus, there, o.deployments,
                                                       o.estimate.memory_fraction)) {
                Option option{m, d, std::vector<int>(r.gpus.size(), 0), 0, 0};
                for (const auto& stage : d.stages) {
                    option.gpus[static_cast<std::size_t>(stage.gpu)] += stage.degree;
                    option.cost += stage.degree * *r.gpus[static_cast<std::size_t>(stage.gpu)].price;
                }
                option.rate = estimate_throughput(r.models[m].model, r.gpus, d,
                                                  r.models[m].workloads[0].shape, o.estimate)
                                  .requests_per_s;
                options.push_back(option);
            }
    }

    /// Calls back with every choice of replicas that availability and budget allow, its makespan and its cost.
    void each(const std::function<void(const std::vector<int>&, double, double)>& visit) const {
        std::vector<int> counts(options.size(), 0), left = available;
        std::vector<double> rate(request.models.size(), 0.0);
        const auto go = [&](const auto& self, std::size_t c, double cost) -> void {
            if (c == options.size()) {
                double makespan = 0;
                for (std::size_t m = 0; m < rate.size(); ++m) {
                    const double f = request.models[m].workloads[0].requests;
                    if (f > 0) makespan = std::max(makespan, rate[m] > 0 ? f / rate[m] : infinity);
                }
                visit(counts, makespan, cost);
                return;
            }
            const auto before = left;
            const auto rates = rate;
            for (int count = 0;; ++count) {
                counts[c] = count;
                self(self, c + 1, cost + count * options[c].cost);
                bool fits = cost + (count + 1) * options[c].cost <= request.budget + 1e-9;
                for (std::size_t g = 0; g < left.size(); ++g)
                    fits = fits && (left[g] -= options[c].gpus[g]) >= 0;
                rate[options[c].model] += options[c].rate;
                if (!fits) break;
            }
            counts[c] = 0;
            left = before;
            rate = rates;
        };
        go(go, 0, 0);
    }
    double best() const {
        double found = infinity;
        each([&](const auto&, double makespan, double) { found = std::min(found, makespan); });
        return found;
    }
};

inline PlannerOptions exact() {
    PlannerOptions options{.deployments = {.degrees = {1, 2}, .max_stages = 2, .max_gpus = 2}};
    options.max_deployments = 0;
    options.search = {.method = serving::ServingMethod::milp};
    return options;
}

inline ServingRequest random_request(Rng& rng, int models) {
    const auto pick = [&](int low, int high) {
        return low + static_cast<int>(rng.below(static_cast<unsigned>(high - low + 1)));
    };
    ServingRequest r;
    const auto all = paper_gpus_dense();
    for (const auto g : {pick(0, 2), pick(3, 5)}) r.gpus.push_back(all[static_cast<std::size_t>(g)]);
    for (std::size_t g = 0; g < r.gpus.size(); ++g) r.available.push_back(pick(0, 3));
    r.budget = 0.5 * pick(1, 14);
    for (int m = 0; m < models; ++m) {
        auto model = llama3_8b();
        model.name += std::to_string(m);
        r.models.push_back({model, {{"w", {pick(100, 3000), pick(1, 600)}, double(pick(0, 1000))}}});
    }
    return r;
}

}  // namespace testing_support
