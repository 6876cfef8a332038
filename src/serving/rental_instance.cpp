// SPDX-License-Identifier: Apache-2.0
#include "serving/rental_instance.hpp"
#include "serving/calibrator.hpp"
#include "serving/instance.hpp"
#include "serving/replica_capacity.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

/// GPUs of a machine that a tensor-parallel group takes: the next divisor of its size, so that groups fill machines.
static int group_size(int degree, int machine) {
    while (machine % degree != 0) ++degree;
    return degree;
}

RentalInstance::RentalInstance(const ServingRequest& request, const PlannerOptions& options,
                               const milp::AnySolver& solver, const Context& context,
                               const std::vector<PlannedReplicas>& running)
    : request_(request), options_(options), solver_(solver), context_(context),
      budget_(context, options.search.solve.time_limit), rates_(request.has_rates()),
      any_running_(!running.empty()) {
    for (std::size_t i = 0; i < request.models.size(); ++i) {
        any_shared_ = any_shared_ || request.models[i].workloads.size() > 1;
        for (std::size_t d = 0; d < request.models[i].workloads.size(); ++d) {
            const auto& workload = request.models[i].workloads[d];
            kinds_.push_back(
                {i, d, list_of(rates_ ? merged(workload.targets, options.targets) : LatencyTargets{})});
            any_targets_ = any_targets_ || !kinds_.back().targets.empty();
        }
    }
    choose(running);
    find_capacities();
}

RentalInstance::Able RentalInstance::able(const ServingInstance& all) const {
    Able found{all, {}, {}};
    std::map<std::pair<std::string, int>, std::pair<double, int>> quickest;  // by model and type: step, place
    for (std::size_t c = 0; c < all.deployments.size(); ++c) {
        bool any = false;
        for (std::size_t w = 0; w < kinds_.size(); ++w) {
            auto& rate = found.all.problem.configurations[c].throughput[w];
            if (rate <= 0) continue;
            if (any_targets_) {
                const auto t = times(all, c, w);
                if (!can_keep(measured_rows(all, c, w), t, kinds_[w].targets)) rate = 0;
                if (rate > 0 && single_type(all.deployments[c]) >= 0) {
                    const std::pair key(request_.models[kinds_[w].model].model.name,
                                        single_type(all.deployments[c]));
                    const std::pair value(t.step_s, static_cast<int>(c));
                    const auto [at, fresh] = quickest.emplace(key, value);
                    if (!fresh) at->second = std::min(at->second, value);
                }
            }
            any = any || rate > 0;
        }
        if (any) found.usable.push_back(static_cast<int>(c));
    }
    for (const auto& [key, value] : quickest) found.quickest.push_back(value.second);
    return found;
}

void RentalInstance::choose(const std::vector<PlannedReplicas>& running) {
    const auto all = all_deployments(request_, options_, running);
    possible_ = static_cast<int>(all.deployments.size());
    const auto [known, usable, quickest] = able(all);
    auto also = quickest;
    std::vector<int> runs(all.deployments.size(), 0);
    for (const auto& replicas : running)
        for (std::size_t c = 0; c < all.deployments.size(); ++c)
            if (all.problem.configurations[c].model == replicas.model &&
                all.deployments[c].stages == replicas.deployment.stages) {
                runs[c] += replicas.count;
                also.push_back(static_cast<int>(c));
            }
    int left_out = 0;
    std::vector<int> keep;
    if (any_targets_) {
        // A deployment that another one dominates by throughput may be the one that keeps the targets.
        std::vector<int> every(usable.size());
        std::iota(every.begin(), every.end(), 0);
        keep = best_per_dollar(with_configurations(known.problem, usable), every, options_.max_deployments);
        left_out = static_cast<int>(usable.size() - keep.size());
        for (auto& c : keep) c = usable[static_cast<std::size_t>(c)];
    } else {
        keep = chosen(known.problem, usable, options_.max_deployments, left_out);
    }
    const auto first = keep.size();
    keep.insert(keep.end(), also.begin(), also.end());
    std::sort(keep.begin(), keep.end());
    keep.erase(std::unique(keep.begin(), keep.end()), keep.end());
    considered_ = kept(known, keep);
    considered_.left_out = std::max(0, left_out - static_cast<int>(keep.size() - first));
    for (const auto c : keep) runs_.push_back(runs[static_cast<std::size_t>(c)]);
}

void RentalInstance::find_capacities() {
    const auto spacing = poisson_spacing(options_.simulated_requests / 2);
    for (std::size_t c = 0; c < considered_.deployments.size(); ++c) {
        capacity_.emplace_back(kinds_.size(), 0.0);
        latency_source_.push_back(considered_.sources[c]);
        for (std::size_t w = 0; w < kinds_.size(); ++w) {
            const double rate = considered_.problem.configurations[c].throughput[w];
            if (rate <= 0) continue;
            const double limit = utilization() * rate;
            const auto& targets = kinds_[w].targets;
            const auto known = measured_targets(measured_rows(considered_, c, w), targets);
            auto& source = latency_source_.back()[w];
            source =
                !targets.empty() && known.unmeasured.empty() ? Source::measured : simulated_source(source);
            capacity_.back()[w] = simulated_capacity(times(considered_, c, w), known.unmeasured,
                                                     std::min(limit, known.capacity), spacing);
        }
    }
}

RentalGoal RentalInstance::wanted() const {
    if (!rates_) return options_.deadline ? RentalGoal::cost : RentalGoal::rate;
    return options_.goal == Goal::cheapest ? RentalGoal::cost : RentalGoal::rate;
}

double RentalInstance::total() const {
    double all = 0;
    for (const auto& workload : considered_.problem.workloads) all += workload.requests;
    return all;
}

std::vector<RentalOffer> RentalInstance::offers() const {
    std::vector<RentalOffer> all;
    for (std::size_t g = 0; g < request_.gpus.size(); ++g) {
        const int piece = options_.machines ? request_.gpus[g].per_machine : 1;
        RentalOffer offer{request_.gpus[g].name, piece, *request_.gpus[g].price * piece,
                          request_.available[g] / piece};
        if (!request_.terms.empty()) {
            const auto& terms = request_.terms[g];
            offer.spot_price = terms.spot_price.value_or(0) * piece;
            offer.spot_available = terms.spot_available / piece;
            offer.minimum = (terms.minimum + piece - 1) / piece;
        }
        all.push_back(std::move(offer));
    }
    return all;
}

RentalProblem RentalInstance::problem(double part, bool separate, bool within) const {
    RentalProblem p;
    p.budget = request_.budget;
    p.offers = offers();
    p.workloads = considered_.problem.workloads;
    if (options_.deadline)
        for (auto& workload : p.workloads) workload.requests /= *options_.deadline;
    for (std::size_t c = 0; c < considered_.deployments.size(); ++c) {
        auto configuration = considered_.problem.configurations[c];
        for (std::size_t w = 0; w < kinds_.size(); ++w)
            configuration.throughput[w] =
                std::min(part * (within ? capacity_[c][w] : utilization() * configuration.throughput[w]),
                         utilization() * configuration.throughput[w]);
        if (options_.machines) {
            std::fill(configuration.gpus.begin(), configuration.gpus.end(), 0);
            for (const auto& stage : considered_.deployments[c].stages)
                configuration.gpus[static_cast<std::size_t>(stage.gpu)] +=
                    group_size(stage.degree, request_.gpus[static_cast<std::size_t>(stage.gpu)].per_machine);
        }
        const auto first = static_cast<int>(p.configurations.size());
        if (any_running_) p.running.push_back(runs_[c]);
        if (!separate) {
            p.configurations.push_back(std::move(configuration));
            continue;
        }
        for (std::size_t w = 0; w < kinds_.size(); ++w) {
            if (p.workloads[w].model != configuration.model) continue;
            p.alike.push_back(first);
            auto one = configuration;
            one.name += ", only " + p.workloads[w].name;
            for (std::size_t other = 0; other < kinds_.size(); ++other)
                if (other != w) one.throughput[other] = 0;
            p.configurations.push_back(std::move(one));
        }
        if (any_running_) p.running.resize(p.configurations.size(), 0);
    }
    return p;
}

RentalSolution RentalInstance::solve(const RentalProblem& problem, RentalGoal goal) const {
    auto options = options_.search.solve;
    options.start.clear();
    if (options.time_limit) options.time_limit = std::max(0.0, *options.time_limit - budget_.elapsed_s());
    return solve_rental(problem, goal, options, solver_, context_);
}

double RentalInstance::load(std::size_t c, double part) const {
    double replicas = 0;
    for (std::size_t w = 0; w < kinds_.size(); ++w) {
        const double rate = considered_.problem.workloads[w].requests;
        if (rate <= 0) continue;
        if (capacity_[c][w] <= 0) return std::numeric_limits<double>::infinity();
        replicas += rate / std::min(part * capacity_[c][w],
                                    utilization() * considered_.problem.configurations[c].throughput[w]);
    }
    return replicas;
}

double RentalInstance::most_part() const {
    double most = 1;
    for (std::size_t c = 0; c < capacity_.size(); ++c)
        for (std::size_t w = 0; w < kinds_.size(); ++w)
            if (capacity_[c][w] > 0)
                most = std::max(most, utilization() * considered_.problem.configurations[c].throughput[w] /
                                          capacity_[c][w]);
    return std::min(most, 10.0);
}

double RentalInstance::all_money() const {
    double money = 0;
    for (const auto& offer : offers())
        money += offer.available * offer.price + offer.spot_available * offer.spot_price;
    return money;
}

KindTimes RentalInstance::times(const ServingInstance& of, std::size_t c, std::size_t w) const {
    const auto& served = request_.models[kinds_[w].model];
    const auto& shape = served.workloads[kinds_[w].workload].shape;
    auto one = options_.estimate;
    one.max_batch = 1;
    return kind_times(estimate(served.model, request_.gpus, of.deployments[c], shape, one),
                      estimate(served.model, request_.gpus, of.deployments[c], shape, options_.estimate),
                      shape.output, of.problem.configurations[c].throughput[w]);
}

std::vector<MeasuredThroughput> RentalInstance::measured_rows(const ServingInstance& of, std::size_t c,
                                                              std::size_t w) const {
    const auto& served = request_.models[kinds_[w].model];
    std::vector<MeasuredThroughput> rows;
    for (const auto& m : request_.measured)
        if (m.model == served.model.name && m.deployment == of.deployments[c].name &&
            m.workload == served.workloads[kinds_[w].workload].name)
            rows.push_back(m);
    return rows;
}

}  // namespace gpusched::serving::detail
