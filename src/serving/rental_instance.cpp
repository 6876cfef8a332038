// SPDX-License-Identifier: Apache-2.0
// RentalInstance: the deployments considered, their capacity within the targets, and the plan of a solution.
#include "serving/rental_instance.hpp"
#include "serving/calibrator.hpp"
#include "serving/instance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

/// GPUs of a machine that a tensor-parallel group occupies: the next divisor of the machine's size, so that
/// groups fill machines.
static int group_size(int degree, int machine) {
    while (machine % degree != 0) ++degree;
    return degree;
}

GPUSCHED_EXPORT RentalInstance::RentalInstance(const ServingRequest& request, const PlannerOptions& options,
                                               const milp::AnySolver& solver, const Context& context,
                                               const std::vector<PlannedReplicas>& running)
    : request_(request), options_(options), solver_(solver), context_(context),
      budget_(context, options.search.solve.time_limit), rates_(request.has_rates()),
      any_running_(!running.empty()), estimators_(estimators_of(request, options.estimate)) {
    for (std::size_t i = 0; i < request.models.size(); ++i) {
        any_shared_ = any_shared_ || request.models[i].workloads.size() > 1;
        for (std::size_t d = 0; d < request.models[i].workloads.size(); ++d) {
            const auto& workload = request.models[i].workloads[d];
            kinds_.push_back(
                {i, d, list_of(rates_ ? merged(workload.targets, options.targets) : LatencyTargets{})});
            mixes_.emplace_back(workload);
            any_targets_ = any_targets_ || !kinds_.back().targets.empty();
        }
    }
    choose(running);
    find_capacities();
}

RentalInstance::Usable RentalInstance::usable(ServingInstance all) const {
    Usable found;
    std::map<std::pair<std::string, int>, std::pair<double, int>> quickest;  // by model and type: step, index
    for (std::size_t c = 0; c < all.deployments.size(); ++c) {
        if (c % 256 == 255 && stopped()) break;
        bool any = false;
        for (std::size_t w = 0; w < kinds_.size(); ++w) {
            auto& rate = all.problem.configurations[c].throughput[w];
            if (rate <= 0) continue;
            if (any_targets_) {
                const auto t = times(all, c, w);
                const auto idle = [&](const LatencyPercentile& percentile) { return t.idle(percentile); };
                if (!can_keep(measured_rows(all, c, w), idle, kinds_[w].targets)) rate = 0;
                if (rate > 0 && single_type(all.deployments[c]) >= 0) {
                    const std::pair key(request_.models[kinds_[w].model].model.name,
                                        single_type(all.deployments[c]));
                    constexpr LatencyPercentile median{"", TokenTime::each, 50, nullptr, nullptr};
                    const double step_s = t.at(mixes_[w].at_percentile(median)).step_s;
                    const std::pair value(step_s, static_cast<int>(c));
                    const auto [at, fresh] = quickest.emplace(key, value);
                    if (!fresh) at->second = std::min(at->second, value);
                }
            }
            any = any || rate > 0;
        }
        if (any) found.usable.push_back(static_cast<int>(c));
    }
    for (const auto& [key, value] : quickest) found.quickest.push_back(value.second);
    found.all = std::move(all);
    return found;
}

void RentalInstance::choose(const std::vector<PlannedReplicas>& running) {
    const auto [known, serving, quickest] = usable(all_deployments(
        request_, options_, [&] { return stopped().has_value(); }, running));
    possible_ = static_cast<int>(known.deployments.size());
    auto also = quickest;
    std::vector<int> runs(known.deployments.size(), 0);
    for (const auto& replicas : running)
        for (const auto c : configurations_of(known, replicas)) {
            runs[c] += replicas.count;
            also.push_back(static_cast<int>(c));
        }
    std::vector<int> keep, dropped;
    if (any_targets_) {
        // A deployment with a dominated throughput can be the one that meets the targets.
        keep = best_per_dollar(known.problem, serving, options_.max_deployments);
        dropped = without(serving, keep);
    } else {
        keep = chosen(known.problem, serving, options_.max_deployments, dropped);
    }
    if (!dropped.empty()) {
        const auto fewer =
            best_of_fewer_types(known.problem, serving, options_.max_deployments, !any_targets_);
        also.insert(also.end(), fewer.begin(), fewer.end());
    }
    add_configurations(keep, also);
    considered_ = kept(known, keep);
    considered_.left_out = static_cast<int>(without(dropped, keep).size());
    if (considered_.left_out > 0) {
        // Bounds ignore latencies beyond those of idle replicas, so dominated deployments change none.
        const auto undominated = [&] {
            if (!options_.machines) return undominated_configurations(known.problem, serving);
            auto of_machines = known.problem;
            for (const auto c : serving) {
                const auto i = static_cast<std::size_t>(c);
                of_machines.configurations[i] = configuration(known, i);
            }
            return undominated_configurations(of_machines, serving);
        }();
        left_out_ = kept(known, without(undominated, keep));
    }
    for (const auto c : keep) runs_.push_back(runs[static_cast<std::size_t>(c)]);
}

void RentalInstance::find_capacities() {
    const auto spacing = poisson_spacing(options_.simulated_requests / 2);
    replica_times_.resize(considered_.deployments.size());
    for (std::size_t c = 0; c < considered_.deployments.size(); ++c) {
        capacity_.emplace_back(kinds_.size(), 0.0);
        latency_source_.push_back(considered_.sources[c]);
        for (std::size_t w = 0; w < kinds_.size(); ++w) {
            const double rate = considered_.problem.configurations[c].throughput[w];
            if (rate <= 0 || stopped()) continue;
            const double limit = utilization() * rate;
            const auto& targets = kinds_[w].targets;
            const auto known = measured_targets(measured_rows(considered_, c, w), targets);
            auto& source = latency_source_.back()[w];
            source =
                !targets.empty() && known.unmeasured.empty() ? Source::measured : simulated_source(source);
            std::vector<std::size_t> requests;
            Rng rng(2);
            for (std::size_t i = 0; i < spacing.size(); ++i)
                requests.push_back(replica_times(c).draw(w, rng));
            capacity_.back()[w] =
                simulated_capacity(replica_times(c).all(), known.unmeasured, std::min(limit, known.capacity),
                                   spacing, requests, [&] { return stopped().has_value(); });
        }
    }
}

RentalGoal RentalInstance::goal() const {
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

ServingConfiguration RentalInstance::configuration(const ServingInstance& of, std::size_t c) const {
    auto configuration = of.problem.configurations[c];
    if (!options_.machines) return configuration;
    std::fill(configuration.gpus.begin(), configuration.gpus.end(), 0);
    for (const auto& stage : of.deployments[c].stages)
        configuration.gpus[static_cast<std::size_t>(stage.gpu)] +=
            group_size(stage.degree, request_.gpus[static_cast<std::size_t>(stage.gpu)].per_machine);
    return configuration;
}

double RentalInstance::bound_beyond(double known) const {
    auto p = problem(1, false, false);
    std::vector<double> dollars(kinds_.size(), std::numeric_limits<double>::infinity());
    const auto add = [&](const ServingInstance& of, std::size_t c) {
        auto one = configuration(of, c);
        for (auto& rate : one.throughput) rate *= utilization();
        p.configurations.push_back(std::move(one));
    };
    const auto considered = p.configurations.size();
    for (std::size_t c = 0; c < left_out_.deployments.size(); ++c) add(left_out_, c);
    p.running.clear();
    const bool cheapest = goal() == RentalGoal::cost;
    if (cheapest) {
        // Drops deployments that no plan cheaper than `known` can use: the replica itself, and the rest of the
        // requests at the lowest price of any deployment.
        std::vector<double> price;
        for (const auto& one : p.configurations) {
            price.push_back(0);
            for (std::size_t n = 0; n < p.offers.size(); ++n)
                price.back() += one.gpus[n] * lowest_price(p.offers[n]) / p.offers[n].gpus;
            for (std::size_t w = 0; w < dollars.size(); ++w)
                if (one.throughput[w] > 0)
                    dollars[w] = std::min(dollars[w], price.back() / one.throughput[w]);
        }
        double all = 0;
        for (std::size_t w = 0; w < dollars.size(); ++w)
            if (p.workloads[w].requests > 0) all += p.workloads[w].requests * dollars[w];
        std::vector<ServingConfiguration> possible(
            p.configurations.begin(), p.configurations.begin() + static_cast<std::ptrdiff_t>(considered));
        for (auto c = considered; c < p.configurations.size(); ++c) {
            const auto& one = p.configurations[c];
            double worth = 0, pieces = 0;
            for (std::size_t w = 0; w < dollars.size(); ++w)
                if (one.throughput[w] > 0) worth = std::max(worth, dollars[w] * one.throughput[w]);
            for (std::size_t n = 0; n < p.offers.size(); ++n)
                pieces += std::ceil(1.0 * one.gpus[n] / p.offers[n].gpus) * lowest_price(p.offers[n]);
            if (std::max(pieces, price[c] + std::max(0.0, all - worth)) < known * (1 - 1e-9))
                possible.push_back(one);
        }
        p.configurations = std::move(possible);
        if (p.configurations.size() == considered) return known;
    }
    const auto most = options_.max_deployments * static_cast<std::ptrdiff_t>(request_.models.size());
    auto options = options_.search.solve;
    options.start.clear();
    options.time_limit = budget_.remaining_s();
    const bool whole = static_cast<std::ptrdiff_t>(p.configurations.size() - considered) <= most;
    return rental_bound(p, goal(), whole, options, solver_, context_);
}

RentalProblem RentalInstance::problem_of(const std::vector<std::size_t>& deployments) const {
    RentalProblem p;
    p.budget = request_.budget;
    p.offers = offers();
    p.workloads = considered_.problem.workloads;
    for (const auto c : deployments) {
        p.configurations.push_back(configuration(considered_, c));
        for (auto& rate : p.configurations.back().throughput) rate *= utilization();
    }
    return p;
}

RentalProblem RentalInstance::problem(double part, bool separate, bool within) const {
    RentalProblem p;
    p.budget = request_.budget;
    p.offers = offers();
    p.workloads = considered_.problem.workloads;
    if (options_.deadline)
        for (auto& workload : p.workloads) workload.requests /= *options_.deadline;
    for (std::size_t c = 0; c < considered_.deployments.size(); ++c) {
        auto one_configuration = configuration(considered_, c);
        for (std::size_t w = 0; w < kinds_.size(); ++w)
            one_configuration.throughput[w] =
                std::min(part * (within ? capacity_[c][w] : utilization() * one_configuration.throughput[w]),
                         utilization() * one_configuration.throughput[w]);
        const auto first = static_cast<int>(p.configurations.size());
        if (any_running_) p.running.push_back(runs_[c]);
        if (!separate) {
            p.configurations.push_back(std::move(one_configuration));
            continue;
        }
        for (std::size_t w = 0; w < kinds_.size(); ++w) {
            if (p.workloads[w].model != one_configuration.model) continue;
            p.alike.push_back(first);
            auto one = one_configuration;
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
    options.time_limit = budget_.remaining_s();
    if (options.time_limit == 0.0) {
        RentalSolution none;
        none.status = milp::Status::time_limit;
        if (goal == RentalGoal::rate) none.bound = std::numeric_limits<double>::infinity();
        return none;
    }
    return solve_rental(problem, goal, options, solver_, context_);
}

int RentalInstance::starts(const std::vector<PlannedReplicas>& replicas) const {
    int starts = 0;
    for (std::size_t c = 0; c < considered_.deployments.size(); ++c) {
        int count = 0;
        for (const auto& r : replicas)
            if (r.model == considered_.problem.configurations[c].model &&
                r.deployment == considered_.deployments[c])
                count += r.count;
        starts += std::max(0, count - runs_[c]);
    }
    return starts;
}

std::optional<milp::Status> RentalInstance::stopped() const {
    if (context_.stop.stop_requested()) return milp::Status::cancelled;
    if (const auto left = budget_.remaining_s(); left && *left <= 0) return milp::Status::time_limit;
    return std::nullopt;
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

WorkloadTimes RentalInstance::times(const ServingInstance& of, std::size_t c, std::size_t w) const {
    return {estimators_[kinds_[w].model], of.deployments[c], mixes_[w],
            of.problem.configurations[c].throughput[w]};
}

ReplicaTimes& RentalInstance::replica_times(std::size_t c) const {
    auto& known = replica_times_[c];
    if (known) return *known;
    known.emplace();
    for (std::size_t w = 0; w < kinds_.size(); ++w)
        known->add(considered_.problem.configurations[c].throughput[w] > 0
                       ? std::optional(times(considered_, c, w))
                       : std::nullopt);
    return *known;
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
                                    const std::vector<std::size_t>& deployment) const {
    ServingPlan plan;
    plan.status = milp::Status::feasible;
    plan.solver = solution.solver;
    plan.rented.assign(request_.gpus.size(), 0);
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
