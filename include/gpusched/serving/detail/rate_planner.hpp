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
            search(goal);
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
            best.optimal = goal == RentalGoal::rate ? bound.bound * total() - best.rate <= gap * best.rate
                                                    : best.cost - best.cost_bound <= gap * best.cost;
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
    /// @param part      of what replicas serve within the targets
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
                    part * (within ? capacity_[c][w] : utilization() * configuration.throughput[w]);
            if (options_.machines) {
                std::fill(configuration.gpus.begin(), configuration.gpus.end(), 0);
                for (const auto& stage : instance_.deployments[c].stages)
                    configuration.gpus[static_cast<std::size_t>(stage.gpu)] += group_size(
                        stage.degree, request_.gpus[static_cast<std::size_t>(stage.gpu)].per_machine);
            }
            if (!separate) {
                p.configurations.push_back(std::move(configuration));
                continue;
            }
            for (std::size_t w = 0; w < kinds_.size(); ++w) {
                if (p.workloads[w].model != configuration.model) continue;
                auto one = configuration;
                one.name += ", only " + p.workloads[w].name;
                for (std::size_t other = 0; other < kinds_.size(); ++other)
                    if (other != w) one.throughput[other] = 0;
                p.configurations.push_back(std::move(one));
            }
        }
        if (!separate && !running_.empty()) p.running = runs_;
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

    /// Simulates a plan; whether all targets are kept.
    bool simulate(ServingPlan& plan) const {
        if (!rates_ || plan.rate <= 0) return true;
        // A percentile of a rare kind needs requests of it.
        double least = 1;
        for (std::size_t w = 0; w < kinds_.size(); ++w)
            if (const double part = instance_.problem.workloads[w].requests / total();
                part > 0 && !kinds_[w].targets.empty())
                least = std::min(least, part);
        const double enough = std::min(std::ceil(rare_requests / 0.8 / least), 1.0 * most_simulated);
        LatencyOptions o{.rate = plan.rate,
                         .requests = std::max(options_.simulated_requests, static_cast<int>(enough)),
                         .seed = 0,
                         .warm_up = 0.2};
        o.estimate = estimate_;
        o.memory_fraction = options_.deployments.memory_fraction;
        const auto found = simulate_latency(request_, plan.replicas, o);
        bool all = true;
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
            all = all && l.met;
            plan.latencies.push_back(std::move(l));
        }
        return all;
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

    /// Solves one rental and keeps it where it keeps the targets and is the best so far.
    bool attempt(RentalGoal goal, double part, bool separate) {
        auto p = problem(part, separate);
        auto s = solve_frugally(p, goal);
        if (!s.has_plan()) return false;
        auto plan = planned(p, s, separate);
        bool kept = simulate(plan);
        int starts = s.starts;
        if (kept && goal == RentalGoal::cost && !running_.empty() && !separate) {
            if (!cheapest_ || plan.cost < cheapest_->cost) cheapest_ = plan;
            p.budget = std::min(p.budget, s.cost * (1 + slack_) * (1 + 1e-9));
            const auto few = solve(p, RentalGoal::starts);
            // The fewest starts whose plan keeps the targets, and of the plans with so many the cheapest.
            int low = few.has_plan() ? few.starts - 1 : starts;
            for (int middle = low + 1; starts - low > 1; middle = (low + starts) / 2) {
                p.max_starts = middle;
                const auto cheap = solve_frugally(p, RentalGoal::cost);
                auto changed = cheap.has_plan() ? planned(p, cheap, false) : ServingPlan{};
                if (cheap.has_plan() && simulate(changed)) {
                    plan = std::move(changed);
                    starts = cheap.starts;
                } else {
                    low = middle;
                }
            }
        }
        if (!kept) return false;
        plan.capacity = part;
        plan.separate = separate;
        const bool better = !best_ ||
                            (goal == RentalGoal::rate ? plan.rate > best_->rate : plan.cost < best_->cost) ||
                            (!rates_ && plan.makespan < best_->makespan);
        if (better) {
            best_ = std::move(plan);
            starts_ = starts;
        }
        return true;
    }

    void search(RentalGoal goal) {
        if (attempt(goal, 1, false) || !any_targets_) return;
        for (const bool separate : {false, true}) {
            if (separate && (!some_share_ || !running_.empty())) continue;
            if (separate && attempt(goal, 1, true)) return;
            double low = 0.2, high = 1;
            for (int i = 0; i < 5; ++i) {
                const double middle = (low + high) / 2;
                (attempt(goal, middle, separate) ? low : high) = middle;
            }
        }
    }

    static constexpr double rare_requests = 250;  ///< of the rarest kind with targets that a simulation has
    static constexpr int most_simulated = 300'000;
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
