// SPDX-License-Identifier: Apache-2.0
#include "serving/rental_instance.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

std::vector<std::size_t> RentalInstance::deployments_of(bool separate) const {
    std::vector<std::size_t> of;
    for (std::size_t c = 0; c < considered_.deployments.size(); ++c) {
        const auto& model = considered_.problem.configurations[c].model;
        const auto copies = separate
                                ? std::count_if(kinds_.begin(), kinds_.end(),
                                                [&](const Kind& kind) {
                                                    return request_.models[kind.model].model.name == model;
                                                })
                                : 1;
        of.insert(of.end(), static_cast<std::size_t>(copies), c);
    }
    return of;
}

ServingPlan RentalInstance::planned(const RentalProblem& problem, const RentalSolution& solution,
                                    bool separate) const {
    ServingPlan plan;
    plan.status = milp::Status::optimal;
    plan.solver = solution.solver;
    plan.rented.assign(request_.gpus.size(), 0);
    const auto deployment = deployments_of(separate);
    std::vector<double> per_gpu(request_.gpus.size(), 0.0);
    for (std::size_t g = 0; g < request_.gpus.size(); ++g) {
        const auto& offer = problem.offers[g];
        RentedGpus rented{offer.name,
                          solution.usual[g] * offer.gpus,
                          solution.spot[g] * offer.gpus,
                          0,
                          offer.gpus,
                          solution.usual[g] * offer.price + solution.spot[g] * offer.spot_price};
        int taken = 0;
        for (std::size_t c = 0; c < problem.configurations.size(); ++c) {
            rented.used += solution.replicas[c] * considered_.problem.configurations[deployment[c]].gpus[g];
            taken += solution.replicas[c] * problem.configurations[c].gpus[g];
        }
        plan.rented[g] = rented.count + rented.spot;
        plan.cost += rented.cost;
        per_gpu[g] = taken > 0 ? rented.cost / taken : 0;
        if (plan.rented[g] > 0) plan.rentals.push_back(std::move(rented));
    }
    double busiest = 0;
    for (std::size_t c = 0; c < problem.configurations.size(); ++c) {
        if (solution.replicas[c] == 0) continue;
        const auto at = deployment[c];
        PlannedReplicas r{problem.configurations[c].model, considered_.deployments[at], solution.replicas[c]};
        for (std::size_t g = 0; g < per_gpu.size(); ++g)
            r.cost += solution.replicas[c] * problem.configurations[c].gpus[g] * per_gpu[g];
        double load = 0;
        for (std::size_t w = 0; w < kinds_.size(); ++w) {
            if (problem.workloads[w].model != r.model) continue;
            const double rate = considered_.problem.configurations[at].throughput[w];
            r.share.push_back(solution.share[c][w]);
            r.requests_per_s.push_back(rate);
            r.source.push_back(considered_.sources[at][w]);
            r.within_targets.push_back(any_targets_ ? capacity_[at][w] : rate);
            r.latency_source.push_back(latency_source_[at][w]);
            if (rate > 0)
                load += solution.share[c][w] * considered_.problem.workloads[w].requests * solution.multiple /
                        rate;
        }
        busiest = std::max(busiest, load / solution.replicas[c]);
        plan.replicas.push_back(std::move(r));
    }
    const double all = total();
    if (rates_) {
        plan.rate = all * solution.multiple;
        plan.makespan = busiest;
        plan.requests_per_s = busiest > 0 ? plan.rate / busiest : 0;
        plan.cost_per_request = plan.rate > 0 ? plan.cost / 3600 / plan.rate : 0;
    } else {
        plan.makespan = options_.deadline ? busiest : all > 0 ? 1 / solution.multiple : 0;
        plan.requests_per_s = plan.makespan > 0 ? all / plan.makespan : 0;
        plan.cost_per_request = all > 0 ? plan.cost * plan.makespan / 3600 / all : 0;
    }
    return plan;
}

}  // namespace gpusched::serving::detail
