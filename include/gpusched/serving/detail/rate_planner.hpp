// One plan of rentals: rates within targets, or a batch on whole machines.
#pragma once

#include <gpusched/core/budget.hpp>
#include <gpusched/serving/detail/instance.hpp>
#include <gpusched/serving/detail/replica_capacity.hpp>
#include <gpusched/serving/plan_serving.hpp>
#include <gpusched/serving/rental.hpp>
#include <gpusched/serving/simulate_latency.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::serving::detail {

/// Whether a request is about rentals: rates, whole machines, spot prices or minimum counts.
inline bool is_rental(const ServingRequest& request, const PlannerOptions& options) {
    const RentalTerms none;
    return request.has_rates() || options.machines ||
           std::any_of(request.terms.begin(), request.terms.end(),
                       [&](const RentalTerms& terms) { return terms != none; });
}

/// GPUs of a machine that a tensor-parallel group takes: the next divisor of its size, so that groups fill machines.
inline int group_size(int degree, int machine) {
    while (machine % degree != 0) ++degree;
    return degree;
}

/// One call of `plan_serving` about rentals.
class RatePlanner {
  public:
    RatePlanner(const ServingRequest& request, const PlannerOptions& options, const milp::AnySolver& solver,
                const Context& context, std::vector<PlannedReplicas> running = {}, double slack = 0)
        : request_(request), options_(options), solver_(solver), context_(context),
          budget_(context, options.search.solve.time_limit), running_(std::move(running)), slack_(slack),
          rates_(request.has_rates()), spacing_(poisson_spacing(options.simulated_requests / 2)) {
        estimate_ = options.estimate;
        estimate_.memory_fraction = options.deployments.memory_fraction;
        for (std::size_t i = 0; i < request.models.size(); ++i) {
            some_share_ = some_share_ || request.models[i].workloads.size() > 1;
            for (std::size_t d = 0; d < request.models[i].workloads.size(); ++d) {
                const auto& workload = request.models[i].workloads[d];
                kinds_.push_back(
                    {i, d, list_of(rates_ ? merged(workload.targets, options.targets) : LatencyTargets{})});
                any_targets_ = any_targets_ || !kinds_.back().targets.empty();
            }
        }
        prepare();
    }

    ServingPlan run() {
        const auto goal = wanted();
        const auto relaxed = problem(1, false, false);
        const auto bound = solve(relaxed, goal);
        ServingPlan best;
        best.status = bound.status;
        best.solver = bound.solver;
        best.message = bound.message;
        if (bound.has_plan() || bound.status != milp::Status::infeasible) {
            search(goal, bound.has_plan() && goal == RentalGoal::cost ? bound.bound : 0);
            if (best_)
                best = std::move(*best_);
            else if (bound.has_plan()) {
                best.status = milp::Status::failed;
                best.message = "no plan was found whose simulation keeps the targets";
            }
        }
        best.left_out = instance_.left_out;
        best.deployments = deployments_;
        best.rented.resize(request_.gpus.size(), 0);
        best.calibration = Calibrator(request_, estimate_).report();
        (goal == RentalGoal::rate ? best.rate_bound : best.cost_bound) =
            goal == RentalGoal::rate ? bound.bound * total() : bound.bound;
        if (goal == RentalGoal::rate && !rates_) {
            best.rate_bound = 0;
            best.bound = bound.bound > 0 ? 1 / bound.bound : 0;
        }
        if (best.has_plan()) {
            const double gap = std::max({options_.search.solve.mip_gap, options_.search.tolerance, 1e-6});
            best.optimal = goal == RentalGoal::cost ? best.cost - best.cost_bound <= gap * best.cost
                           : rates_                 ? best.rate_bound - best.rate <= gap * best.rate
                                                    : best.makespan - best.bound <= gap * best.makespan;
            if (cheapest_ && best.cost > cheapest_->cost * (1 + gap))
                best.message = "fewest starts within slack";
            else if (!best.optimal && best.message.empty())
                best.message = any_targets_
                                   ? "the bound does not count queueing; a cheaper plan may keep the targets"
                                   : "the solver stopped before this was proved to be the best";
        }
        refused_ = !best.has_plan() && (bound.status == milp::Status::infeasible || bound.has_plan());
        return best;
    }

    /// After `run`: no plan, and not because a solver gave up. `WhyRefused` says what would do.
    [[nodiscard]] bool refused() const { return refused_; }

    /// The fewest replicas to start for at most `slack` more than the cheapest; see `replan`.
    [[nodiscard]] int starts() const { return starts_; }
    [[nodiscard]] const std::optional<ServingPlan>& cheapest() const { return cheapest_; }

    /// The rental problem.
    /// @param part      of what replicas serve within the targets of each kind alone; above 1, up to what they serve at all
    /// @param separate  every replica serves one kind of requests
    /// @param within    count what is served within the targets; otherwise what is served at all by deployments whose idle
    ///                  replicas keep them
    [[nodiscard]] RentalProblem problem(double part, bool separate, bool within = true) const {
        RentalProblem p;
        p.budget = request_.budget;
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
            p.offers.push_back(std::move(offer));
        }
        p.workloads = instance_.problem.workloads;
        if (options_.deadline)
            for (auto& workload : p.workloads) workload.requests /= *options_.deadline;
        for (std::size_t c = 0; c < instance_.deployments.size(); ++c) {
            auto configuration = instance_.problem.configurations[c];
            for (std::size_t w = 0; w < kinds_.size(); ++w)
                configuration.throughput[w] =
                    std::min(part * (within ? capacity_[c][w] : utilization() * configuration.throughput[w]),
                             utilization() * configuration.throughput[w]);
            if (options_.machines) {
                std::fill(configuration.gpus.begin(), configuration.gpus.end(), 0);
                for (const auto& stage : instance_.deployments[c].stages)
                    configuration.gpus[static_cast<std::size_t>(stage.gpu)] += group_size(
                        stage.degree, request_.gpus[static_cast<std::size_t>(stage.gpu)].per_machine);
            }
            const auto first = static_cast<int>(p.configurations.size());
            if (!running_.empty()) p.running.push_back(runs_[c]);
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
            if (!running_.empty()) p.running.resize(p.configurations.size(), 0);
        }
        return p;
    }

    [[nodiscard]] RentalSolution solve(const RentalProblem& p, RentalGoal goal) const {
        auto options = options_.search.solve;
        options.start.clear();
        if (options.time_limit) options.time_limit = std::max(0.0, *options.time_limit - budget_.elapsed_s());
        return solve_rental(p, goal, options, solver_, context_);
    }
    [[nodiscard]] RentalGoal wanted() const {
        if (!rates_) return options_.deadline ? RentalGoal::cost : RentalGoal::rate;
        return options_.goal == Goal::cheapest ? RentalGoal::cost : RentalGoal::rate;
    }

    /// One workload of one model of the request, and its targets.
    struct Kind {
        std::size_t model, workload;
        std::vector<LatencyTarget> targets{};
    };
    [[nodiscard]] const std::vector<Kind>& kinds() const { return kinds_; }
    [[nodiscard]] bool any_targets() const { return any_targets_; }
    /// Requests of all kinds together.
    [[nodiscard]] double total() const {
        double all = 0;
        for (const auto& workload : instance_.problem.workloads) all += workload.requests;
        return all;
    }
    /// What a deployment, of the planner's or of more, takes for a request of a kind.
    [[nodiscard]] KindTimes times(const ServingInstance& of, std::size_t c, std::size_t w) const {
        const auto& served = request_.models[kinds_[w].model];
        const auto& shape = served.workloads[kinds_[w].workload].shape;
        auto one = estimate_;
        one.max_batch = 1;
        return kind_times(estimate(served.model, request_.gpus, of.deployments[c], shape, one),
                          estimate(served.model, request_.gpus, of.deployments[c], shape, estimate_),
                          shape.output, of.problem.configurations[c].throughput[w]);
    }
    /// What was measured of it.
    [[nodiscard]] std::vector<MeasuredThroughput> measured_rows(const ServingInstance& of, std::size_t c,
                                                                std::size_t w) const {
        const auto& served = request_.models[kinds_[w].model];
        std::vector<MeasuredThroughput> rows;
        for (const auto& m : request_.measured)
            if (m.model == served.model.name && m.deployment == of.deployments[c].name &&
                m.workload == served.workloads[kinds_[w].workload].name)
                rows.push_back(m);
        return rows;
    }

  private:
    [[nodiscard]] double utilization() const { return rates_ ? options_.utilization : 1.0; }
    void prepare() {
        const auto all = all_deployments(request_, options_, running_);
        deployments_ = static_cast<int>(all.deployments.size());
        auto able = all;
        std::map<std::pair<std::string, int>, std::pair<double, int>>
            quickest;  // by model and type: step, place
        std::vector<int> usable, also;
        for (std::size_t c = 0; c < all.deployments.size(); ++c) {
            bool any = false;
            for (std::size_t w = 0; w < kinds_.size(); ++w) {
                auto& rate = able.problem.configurations[c].throughput[w];
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
            if (any) usable.push_back(static_cast<int>(c));
        }
        for (const auto& [key, value] : quickest) also.push_back(value.second);
        std::vector<int> runs(all.deployments.size(), 0);
        for (const auto& replicas : running_)
            for (std::size_t c = 0; c < all.deployments.size(); ++c)
                if (all.problem.configurations[c].model == replicas.model &&
                    all.deployments[c].stages == replicas.deployment.stages) {
                    runs[c] += replicas.count;
                    also.push_back(static_cast<int>(c));
                }
        // A deployment that another one dominates by throughput may be the one that keeps the targets.
        int left_out = 0;
        auto keep = any_targets_ ? best_per_dollar(with_configurations(able.problem, usable),
                                                   every(usable.size()), options_.max_deployments)
                                 : std::vector<int>{};
        if (any_targets_) {
            left_out = static_cast<int>(usable.size() - keep.size());
            for (auto& c : keep) c = usable[static_cast<std::size_t>(c)];
        } else {
            keep = chosen(able.problem, usable, options_.max_deployments, left_out);
        }
        const auto first = keep.size();
        keep.insert(keep.end(), also.begin(), also.end());
        std::sort(keep.begin(), keep.end());
        keep.erase(std::unique(keep.begin(), keep.end()), keep.end());
        instance_ = kept(able, keep);
        instance_.left_out = std::max(0, left_out - static_cast<int>(keep.size() - first));
        for (const auto c : keep) runs_.push_back(runs[static_cast<std::size_t>(c)]);
        for (std::size_t c = 0; c < keep.size(); ++c) {
            capacity_.emplace_back(kinds_.size(), 0.0);
            latency_source_.push_back(instance_.sources[c]);
            for (std::size_t w = 0; w < kinds_.size(); ++w) {
                const double rate = instance_.problem.configurations[c].throughput[w];
                if (rate <= 0) continue;
                const double limit = utilization() * rate;
                const auto& targets = kinds_[w].targets;
                const auto known = measured_targets(measured_rows(instance_, c, w), targets);
                auto& source = latency_source_.back()[w];
                source = !targets.empty() && known.unmeasured.empty() ? Source::measured : simulated(source);
                capacity_.back()[w] = simulated_capacity(times(instance_, c, w), known.unmeasured,
                                                         std::min(limit, known.capacity), spacing_);
            }
        }
    }

    /// The source of latencies that are simulated with a throughput of this one.
    static Source simulated(Source throughput) {
        return throughput == Source::measured ? Source::calibrated : throughput;
    }
    static std::vector<int> every(std::size_t n) {
        std::vector<int> all(n);
        for (std::size_t i = 0; i < n; ++i) all[i] = static_cast<int>(i);
        return all;
    }
    /// The deployment of each configuration of `problem`.
    [[nodiscard]] std::vector<std::size_t> deployments_of(bool separate) const {
        std::vector<std::size_t> of;
        for (std::size_t c = 0; c < instance_.deployments.size(); ++c) {
            const auto& model = instance_.problem.configurations[c].model;
            const auto copies =
                separate ? std::count_if(kinds_.begin(), kinds_.end(),
                                         [&](const Kind& kind) {
                                             return request_.models[kind.model].model.name == model;
                                         })
                         : 1;
            of.insert(of.end(), static_cast<std::size_t>(copies), c);
        }
        return of;
    }
    /// The plan of a rental.
    [[nodiscard]] ServingPlan planned(const RentalProblem& p, const RentalSolution& s, bool separate) const {
        ServingPlan plan;
        plan.status = milp::Status::optimal;
        plan.solver = s.solver;
        plan.rented.assign(request_.gpus.size(), 0);
        const auto deployment = deployments_of(separate);
        std::vector<double> per_gpu(request_.gpus.size(), 0.0);
        for (std::size_t g = 0; g < request_.gpus.size(); ++g) {
            const auto& offer = p.offers[g];
            RentedGpus rented{offer.name,
                              s.usual[g] * offer.gpus,
                              s.spot[g] * offer.gpus,
                              0,
                              offer.gpus,
                              s.usual[g] * offer.price + s.spot[g] * offer.spot_price};
            int taken = 0;
            for (std::size_t c = 0; c < p.configurations.size(); ++c) {
                rented.used += s.replicas[c] * instance_.problem.configurations[deployment[c]].gpus[g];
                taken += s.replicas[c] * p.configurations[c].gpus[g];
            }
            plan.rented[g] = rented.count + rented.spot;
            plan.cost += rented.cost;
            per_gpu[g] = taken > 0 ? rented.cost / taken : 0;
            if (plan.rented[g] > 0) plan.rentals.push_back(std::move(rented));
        }
        double busiest = 0;
        for (std::size_t c = 0; c < p.configurations.size(); ++c) {
            if (s.replicas[c] == 0) continue;
            const auto at = deployment[c];
            PlannedReplicas r{p.configurations[c].model, instance_.deployments[at], s.replicas[c]};
            for (std::size_t g = 0; g < per_gpu.size(); ++g)
                r.cost += s.replicas[c] * p.configurations[c].gpus[g] * per_gpu[g];
            double load = 0;
            for (std::size_t w = 0; w < kinds_.size(); ++w) {
                if (p.workloads[w].model != r.model) continue;
                const double rate = instance_.problem.configurations[at].throughput[w];
                r.share.push_back(s.share[c][w]);
                r.requests_per_s.push_back(rate);
                r.source.push_back(instance_.sources[at][w]);
                r.within_targets.push_back(any_targets_ ? capacity_[at][w] : rate);
                r.latency_source.push_back(latency_source_[at][w]);
                if (rate > 0)
                    load += s.share[c][w] * instance_.problem.workloads[w].requests * s.multiple / rate;
            }
            busiest = std::max(busiest, load / s.replicas[c]);
            plan.replicas.push_back(std::move(r));
        }
        const double all = total();
        if (rates_) {
            plan.rate = all * s.multiple;
            plan.makespan = busiest;
            plan.requests_per_s = busiest > 0 ? plan.rate / busiest : 0;
            plan.cost_per_request = plan.rate > 0 ? plan.cost / 3600 / plan.rate : 0;
        } else {
            plan.makespan = options_.deadline ? busiest : all > 0 ? 1 / s.multiple : 0;
            plan.requests_per_s = plan.makespan > 0 ? all / plan.makespan : 0;
            plan.cost_per_request = all > 0 ? plan.cost * plan.makespan / 3600 / all : 0;
        }
        return plan;
    }

    /// Simulates a plan, with targets several times, since of many plans that are tried one may keep them by luck; the longest latencies
    /// count. Whether all targets are kept every time.
    bool simulate(ServingPlan& plan) const {
        if (!rates_ || plan.rate <= 0) return true;
        for (std::uint64_t seed = 0; seed < (any_targets_ ? simulations : 1); ++seed) {
            auto once = simulated_latencies(plan, seed);
            for (std::size_t i = 0; i < once.size(); ++i) {
                auto& longest = once[i];
                if (seed > 0)
                    for (const bool first_token : {true, false})
                        for (const double percent : {50.0, 90.0, 99.0}) {
                            auto& value = longest.*percentile_field(first_token, percent);
                            value =
                                std::max(value, plan.latencies[i].*percentile_field(first_token, percent));
                        }
            }
            plan.latencies = std::move(once);
            if (std::any_of(plan.latencies.begin(), plan.latencies.end(),
                            [](const PlannedLatency& latency) { return !latency.met; }))
                return false;
        }
        return true;
    }

    /// The latencies of each kind in one simulation of a plan.
    [[nodiscard]] std::vector<PlannedLatency> simulated_latencies(const ServingPlan& plan,
                                                                  std::uint64_t seed) const {
        // A percentile of a rare kind needs requests of it.
        double least = 1;
        for (std::size_t w = 0; w < kinds_.size(); ++w)
            if (const double part = instance_.problem.workloads[w].requests / total();
                part > 0 && !kinds_[w].targets.empty())
                least = std::min(least, part);
        const double enough = std::min(std::ceil(rare_requests / 0.8 / least), 1.0 * most_simulated);
        LatencyOptions o{.rate = plan.rate,
                         .requests = std::max(options_.simulated_requests, static_cast<int>(enough)),
                         .seed = seed,
                         .warm_up = 0.2};
        o.estimate = estimate_;
        o.memory_fraction = options_.deployments.memory_fraction;
        const auto found = simulate_latency(request_, plan.replicas, o);
        std::vector<PlannedLatency> latencies;
        for (const auto& kind : found.kinds) {
            std::size_t w = 0;
            while (request_.models[kinds_[w].model].model.name != kind.model ||
                   instance_.problem.workloads[w].name != kind.workload)
                ++w;
            PlannedLatency l{kind.model, kind.workload,
                             instance_.problem.workloads[w].requests / total() * plan.rate};
            if (!kind.ttft.empty())
                for (const double percent : {50.0, 90.0, 99.0})
                    l.*percentile_field(true, percent) = percentile_of(kind.ttft, percent);
            if (!kind.tpot.empty())
                for (const double percent : {50.0, 90.0, 99.0})
                    l.*percentile_field(false, percent) = percentile_of(kind.tpot, percent);
            std::vector<const PlannedReplicas*> serving;
            for (const auto& r : plan.replicas)
                if (r.model == kind.model && r.share[kinds_[w].workload] > 0) serving.push_back(&r);
            for (const auto* r : serving) {
                if (kind.latency.empty()) alone(l, *r, w);
                const auto source = simulated(r->source[kinds_[w].workload]);
                l.ttft_source = l.tpot_source =
                    r == serving.front() ? source : std::max(l.ttft_source, source);
            }
            for (const bool first_token : {true, false}) put_measured(l, serving, w, first_token);
            for (const auto& target : kinds_[w].targets) {
                const auto& value = l.*percentile_field(target.first_token, target.percent);
                l.met = l.met && (!value || *value <= target.seconds * (1 + 1e-9));
            }
            latencies.push_back(std::move(l));
        }
        return latencies;
    }

    static std::optional<double> PlannedLatency::*percentile_field(bool first_token, double percent) {
        using L = PlannedLatency;
        if (first_token)
            return percent < 75 ? &L::ttft_p50_s : percent < 95 ? &L::ttft_p90_s : &L::ttft_p99_s;
        return percent < 75 ? &L::tpot_p50_s : percent < 95 ? &L::tpot_p90_s : &L::tpot_p99_s;
    }

    /// Where a latency with targets was measured on all replicas of a kind, each alone with it, its percentiles with targets are the
    /// longest measured ones at the replicas' loads. Of the others nothing is known: rows say no other percentile.
    void put_measured(PlannedLatency& latency, const std::vector<const PlannedReplicas*>& serving,
                      std::size_t w, bool first_token) const {
        const auto& targets = kinds_[w].targets;
        if (serving.empty() || std::none_of(targets.begin(), targets.end(), [&](const LatencyTarget& target) {
                return target.first_token == first_token;
            }))
            return;
        double longest = 0;
        for (const auto* r : serving) {
            if (std::count_if(r->share.begin(), r->share.end(), [](double share) { return share > 0; }) > 1)
                return;
            const double load = r->share[kinds_[w].workload] * latency.rate / r->count;
            const auto value = latency_at(measured_rows(instance_, index_of(*r), w), first_token, load);
            if (!value) return;
            longest = std::max(longest, *value);
        }
        (first_token ? latency.ttft_source : latency.tpot_source) = Source::measured;
        for (const double percent : {50.0, 90.0, 99.0}) latency.*percentile_field(first_token, percent) = {};
        for (const auto& target : targets) {
            if (target.first_token != first_token) continue;
            // A solver fills replicas to its tolerance.
            const bool rounded = longest > target.seconds && longest <= target.seconds * (1 + 1e-5);
            latency.*percentile_field(first_token, target.percent) = rounded ? target.seconds : longest;
        }
    }

    /// The deployment of a plan's replicas.
    [[nodiscard]] std::size_t index_of(const PlannedReplicas& replicas) const {
        std::size_t c = 0;
        while (instance_.problem.configurations[c].model != replicas.model ||
               instance_.deployments[c].name != replicas.deployment.name)
            ++c;
        return c;
    }

    /// A kind so rare that none of its requests was simulated: what an idle replica takes.
    void alone(PlannedLatency& latency, const PlannedReplicas& replicas, std::size_t w) const {
        const auto t = times(instance_, index_of(replicas), w);
        for (const double percent : {50.0, 90.0, 99.0}) {
            auto& first = latency.*percentile_field(true, percent);
            first = std::max(first.value_or(0), t.prefill_s + t.lag_s);
            if (t.steps <= 0) continue;
            auto& each = latency.*percentile_field(false, percent);
            each = std::max(each.value_or(0), t.step_s);
        }
    }

    /// Solves for the cost, or for the rate and then for the least cost of that rate; and where GPUs are rented for nothing,
    /// for the fewest of them.
    [[nodiscard]] RentalSolution solve_frugally(RentalProblem p, RentalGoal goal) const {
        auto s = solve(p, goal);
        if (!s.has_plan()) return s;
        const auto improve = [&](RentalGoal next) {
            p.budget = s.cost * (1 + 1e-9);
            const auto better = solve(p, next);
            if (!better.has_plan() || better.cost > s.cost * (1 + 1e-9)) return;
            s.replicas = better.replicas, s.share = better.share, s.usual = better.usual,
            s.spot = better.spot;
            s.cost = better.cost, s.starts = better.starts;
        };
        if (goal == RentalGoal::rate) {
            for (auto& workload : p.workloads) workload.requests *= s.multiple;
            improve(RentalGoal::cost);
        }
        for (std::size_t n = 0; n < p.offers.size(); ++n)
            if ((s.usual[n] > 0 && p.offers[n].price <= 0) ||
                (s.spot[n] > 0 && p.offers[n].spot_price <= 0)) {
                improve(RentalGoal::gpus);
                break;
            }
        return s;
    }

    /// How a try to fill replicas to some part of their capacity ended.
    enum class Tried : std::uint8_t {
        kept,       ///< the plan keeps the targets
        missed,     ///< a plan was found, and its simulation misses a target: fill less
        no_rental,  ///< GPUs or budget do not suffice: fill more
    };

    /// Solves one rental and remembers it where it keeps the targets and is the best so far.
    /// @param only the one deployment whose replicas may run; absent = all
    Tried attempt(RentalGoal goal, double part, bool separate, std::optional<std::size_t> only = {}) {
        auto p = problem(part, separate);
        for (std::size_t c = 0; only && c < p.configurations.size(); ++c)
            if (c != *only)
                std::fill(p.configurations[c].throughput.begin(), p.configurations[c].throughput.end(), 0.0);
        const auto s = solve_frugally(p, goal);
        if (!s.has_plan()) return Tried::no_rental;
        auto plan = planned(p, s, separate);
        if (!simulate(plan)) return Tried::missed;
        plan.capacity = part;
        plan.separate = separate;
        const bool better = !best_ ||
                            (goal == RentalGoal::rate ? plan.rate > best_->rate : plan.cost < best_->cost) ||
                            (!rates_ && plan.makespan < best_->makespan);
        if (better) {
            best_ = std::move(plan);
            starts_ = s.starts;
        }
        return Tried::kept;
    }

    /// Searches the fullest replicas that keep the targets. Fuller replicas rent less; emptier ones wait less.
    void fill(RentalGoal goal, bool separate) {
        double low = least_part, high = 1;
        const auto whole = attempt(goal, 1, separate);
        if (whole == Tried::no_rental) return;  // emptier replicas rent more
        if (whole == Tried::kept) {
            if (goal != RentalGoal::rate) return;  // `spend_less` fills more
            low = 1, high = most_part();
        }
        for (int i = 0; i < 5 && high > low * 1.01; ++i) {
            const double middle = (low + high) / 2;
            (attempt(goal, middle, separate) == Tried::missed ? high : low) = middle;
        }
    }

    /// Searches plans that cost less than the best one, down to `least`. The part of the capacity at which a sum of money suffices is that
    /// of the plan with the highest rate for this money, which waits less than others for as much.
    void spend_less(double least, bool separate) {
        double low = least;
        double high = best_ ? best_->cost : std::min(request_.budget, all_money());
        for (int i = 0; i < 7; ++i) {
            const bool first = !best_ && i == 0;  // everything that there is
            const double middle = first ? high : (low + high) / 2;
            if (!first && high - low <= 1e-6 * high) return;
            auto p = problem(1, separate);
            p.budget = middle;
            const auto most = solve(p, RentalGoal::rate);
            const double part = most.has_plan() ? (1 + 1e-6) / most.multiple : 0;
            const double before = best_ ? best_->cost : std::numeric_limits<double>::infinity();
            const bool kept = part > 0 && part <= most_part() * (1 + 1e-6) &&
                              attempt(RentalGoal::cost, part, separate) == Tried::kept;
            if (first && !kept) return;
            if (kept)
                high = std::min(middle, best_->cost < before ? best_->cost : middle);
            else
                low = middle;
        }
    }

    /// Tries replicas of one deployment alone that serve all kinds, from as few as can serve them at all. The program, which adds up
    /// what kinds take alone, prefers other deployments, of which a simulation may keep less.
    void one_deployment() {
        if (request_.models.size() != 1) return;
        struct Candidate {
            std::size_t deployment;
            double fewest;  ///< replicas that can serve the rates at all
            double price;   ///< $/h of a replica, at least
        };
        std::vector<Candidate> candidates;
        const auto whole = problem(1, false);
        for (std::size_t c = 0; c < whole.configurations.size(); ++c) {
            Candidate one{c, load(c, std::numeric_limits<double>::infinity()), 0};
            for (std::size_t n = 0; n < whole.offers.size(); ++n) {
                const auto& offer = whole.offers[n];
                const double least =
                    offer.spot_available > 0 ? std::min(offer.price, offer.spot_price) : offer.price;
                one.price += whole.configurations[c].gpus[n] * least / offer.gpus;
            }
            one.fewest = std::max(1.0, std::ceil(one.fewest - 1e-9));
            if (std::isfinite(one.fewest)) candidates.push_back(one);
        }
        const auto cost = [](const Candidate& one) { return one.fewest * one.price; };
        std::stable_sort(candidates.begin(), candidates.end(),
                         [&](const Candidate& a, const Candidate& b) { return cost(a) < cost(b); });
        for (const auto& one : candidates)
            for (double replicas = one.fewest; replicas < one.fewest + most_more; ++replicas) {
                if (best_ && replicas * one.price >= best_->cost * (1 - 1e-9)) break;
                double low = least_part, high = most_part() * (1 + 1e-6);
                for (int i = 0; i < 40; ++i) {
                    const double middle = (low + high) / 2;
                    (load(one.deployment, middle) <= replicas ? high : low) = middle;
                }
                if (attempt(RentalGoal::cost, high, false, one.deployment) != Tried::missed) break;
            }
    }

    /// The replicas of a deployment that serve all kinds, each filled to a part of the capacity; infinite where it does not serve a kind.
    [[nodiscard]] double load(std::size_t c, double part) const {
        double replicas = 0;
        for (std::size_t w = 0; w < kinds_.size(); ++w) {
            const double rate = instance_.problem.workloads[w].requests;
            if (rate <= 0) continue;
            if (capacity_[c][w] <= 0) return std::numeric_limits<double>::infinity();
            replicas += rate / std::min(part * capacity_[c][w],
                                        utilization() * instance_.problem.configurations[c].throughput[w]);
        }
        return replicas;
    }

    /// Of the plans that cost at most `slack` more than the cheapest, remembers one that starts fewest replicas, and of these the cheapest.
    void start_few() {
        cheapest_ = best_;
        const double money = std::min(request_.budget, best_->cost * (1 + slack_) * (1 + 1e-9));
        for (const bool separate : {best_->separate, !best_->separate}) {
            if (separate && !some_share_) continue;
            auto p = problem(cheapest_->capacity, separate);
            p.budget = money;
            const auto few = solve(p, RentalGoal::starts);
            // So few starts do not suffice; as many as the best plan's are enough.
            int low = few.has_plan() ? few.starts - 1 : starts_;
            while (starts_ - low > 1) {
                const int middle = low == few.starts - 1 ? few.starts : (low + starts_) / 2;
                p.max_starts = middle;
                const auto cheap = solve_frugally(p, RentalGoal::cost);
                auto changed = cheap.has_plan() ? planned(p, cheap, separate) : ServingPlan{};
                if (cheap.has_plan() && simulate(changed)) {
                    changed.capacity = cheapest_->capacity;
                    changed.separate = separate;
                    best_ = std::move(changed);
                    starts_ = cheap.starts;
                } else {
                    low = middle;
                }
            }
        }
    }

    /// @param least $/h that no plan undercuts
    void search(RentalGoal goal, double least) {
        if (!any_targets_) {
            attempt(goal, 1, false);
        } else {
            for (const bool separate : {false, true}) {
                if (separate && !some_share_) continue;
                if (goal == RentalGoal::cost && best_ && best_->cost <= least * (1 + 1e-6)) break;
                fill(goal, separate);
                if (goal == RentalGoal::cost) spend_less(least, separate);
            }
            if (goal == RentalGoal::cost && (!best_ || best_->cost > least * (1 + 1e-6))) one_deployment();
        }
        if (goal == RentalGoal::cost && best_ && !running_.empty()) start_few();
    }

    /// $/h of everything that can be rented.
    [[nodiscard]] double all_money() const {
        double money = 0;
        for (const auto& offer : problem(1, false).offers)
            money += offer.available * offer.price + offer.spot_available * offer.spot_price;
        return money;
    }
    /// The part of the capacity within targets at which some replica serves all that it can.
    [[nodiscard]] double most_part() const {
        double most = 1;
        for (std::size_t c = 0; c < capacity_.size(); ++c)
            for (std::size_t w = 0; w < kinds_.size(); ++w)
                if (capacity_[c][w] > 0)
                    most = std::max(most, utilization() * instance_.problem.configurations[c].throughput[w] /
                                              capacity_[c][w]);
        return std::min(most, 10.0);
    }

    static constexpr double least_part = 0.2;     ///< of the capacity; emptier replicas are not tried
    static constexpr int most_more = 6;           ///< replicas of one deployment beyond the fewest, less one
    static constexpr double rare_requests = 250;  ///< of the rarest kind with targets that a simulation has
    static constexpr int most_simulated = 300'000;
    static constexpr std::uint64_t simulations = 3;
    const ServingRequest& request_;
    const PlannerOptions& options_;
    const milp::AnySolver& solver_;
    const Context& context_;
    Budget budget_;
    std::vector<PlannedReplicas> running_;
    double slack_;
    bool rates_;
    std::vector<double> spacing_;
    EstimateOptions estimate_;
    std::vector<Kind> kinds_;
    bool any_targets_ = false;
    bool some_share_ = false;  ///< some model has several kinds
    ServingInstance instance_;
    int deployments_ = 0;
    std::vector<int> runs_;
    std::vector<std::vector<double>> capacity_;
    std::vector<std::vector<Source>> latency_source_;
    std::optional<ServingPlan> best_, cheapest_;
    int starts_ = 0;
    bool refused_ = false;
};

}  // namespace GPUSCHED_NAMESPACE::serving::detail
