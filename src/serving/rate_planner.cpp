// SPDX-License-Identifier: Apache-2.0
// Search for the best plan of a rental instance: attempts rentals with different loads of replicas, simulates
// them, and keeps the best.
#include "serving/calibrator.hpp"
#include "serving/rental_instance.hpp"

#include <gpusched/serving/simulate_latency.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

/// The latencies of plans of one instance: simulated with the arrivals of the plan, or measured.
class PlanLatencies {
  public:
    /// @param instance  must outlive this object
    explicit PlanLatencies(const RentalInstance& instance) : instance_(instance) {}

    /// Simulates a plan and sets its latencies. With targets it simulates several times and keeps the longest
    /// latencies, since one of many plans could meet the targets by chance.
    /// @return whether all targets are met every time; false if the time does not suffice
    bool simulate(ServingPlan& plan) const {
        if (!instance_.has_rates() || plan.rate <= 0) return true;
        for (std::uint64_t seed = 0; seed < (instance_.any_targets() ? simulations : 1); ++seed) {
            if (instance_.out_of_time()) return false;
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

  private:
    /// The requests of a simulation: more if a kind with targets is rare, since its percentiles need enough
    /// requests.
    [[nodiscard]] int simulated_requests() const {
        double least = 1;  // part of the rarest kind with targets in all requests
        for (std::size_t w = 0; w < instance_.kinds().size(); ++w)
            if (const double part = instance_.considered().problem.workloads[w].requests / instance_.total();
                part > 0 && !instance_.kinds()[w].targets.empty())
                least = std::min(least, part);
        const double enough = std::min(std::ceil(rare_requests / 0.8 / least), 1.0 * most_simulated);
        return std::max(instance_.options().simulated_requests, static_cast<int>(enough));
    }

    /// The latencies of each kind in one simulation of a plan.
    [[nodiscard]] std::vector<PlannedLatency> simulated_latencies(const ServingPlan& plan,
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

    /// Sets measured latencies if TTFT (else TPOT) has targets and was measured on all replicas of the kind,
    /// which serve only this kind. Percentiles with targets get the longest latency at the loads of the
    /// replicas; the others become unknown.
    void set_measured(PlannedLatency& latency, const std::vector<const PlannedReplicas*>& serving,
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
            const auto value = latency_at(instance_.measured_rows(instance_.considered(), index_of(*r), w),
                                          first_token, load);
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

    /// Sets the latencies of an idle replica, for a kind so rare that none of its requests was simulated.
    void set_idle(PlannedLatency& latency, const PlannedReplicas& replicas, std::size_t w) const {
        const auto t = instance_.times(instance_.considered(), index_of(replicas), w);
        for (const auto& field : latency_percentiles) {
            if (!field.first_token && t.steps <= 0) continue;
            auto& value = latency.*field.planned;
            value = std::max(value.value_or(0), field.first_token ? t.prefill_s + t.lag_s : t.step_s);
        }
    }

    /// The index of the deployment of replicas among those considered.
    [[nodiscard]] std::size_t index_of(const PlannedReplicas& replicas) const {
        const auto& considered = instance_.considered();
        std::size_t c = 0;
        while (considered.problem.configurations[c].model != replicas.model ||
               considered.deployments[c].name != replicas.deployment.name)
            ++c;
        return c;
    }

    static constexpr double rare_requests = 250;  ///< simulated requests of the rarest kind with targets
    /// Most requests of a simulation, unless the options set more.
    static constexpr int most_simulated = 300'000;
    static constexpr std::uint64_t simulations = 3;  ///< simulations of a plan with targets
    const RentalInstance& instance_;
};

/// One search for the best plan of an instance.
class RatePlanner {
  public:
    RatePlanner(const RentalInstance& instance, double slack)
        : instance_(instance), latencies_(instance), slack_(slack) {}

    RentalOutcome run() {
        const auto& search_options = instance_.options().search;
        const auto goal = instance_.goal();
        const auto bound = instance_.solve(instance_.problem(1, false, false), goal);
        bool unfinished = false;
        ServingPlan best;
        best.status = bound.status;
        best.solver = bound.solver;
        best.message = bound.message;
        if (bound.has_plan() || bound.status != milp::Status::infeasible) {
            search(goal, bound.has_plan() && goal == RentalGoal::cost ? bound.bound : 0);
            if (best_)
                best = std::move(*best_);
            else if (instance_.out_of_time()) {
                best.status = milp::Status::time_limit;
                best.message = "the time limit ended the search before it found a plan";
                unfinished = true;
            } else if (bound.has_plan()) {
                best.status = milp::Status::failed;
                best.message = "no plan was found that meets the targets in its simulation";
            }
        }
        best.left_out = instance_.considered().left_out;
        best.deployments = instance_.possible();
        best.rented.resize(instance_.request().gpus.size(), 0);
        best.calibration = Calibrator(instance_.request(), instance_.options().estimate).report();
        (goal == RentalGoal::rate ? best.rate_bound : best.cost_bound) =
            goal == RentalGoal::rate ? bound.bound * instance_.total() : bound.bound;
        if (goal == RentalGoal::rate && !instance_.has_rates()) {
            best.rate_bound = 0;
            best.bound = bound.bound > 0 ? 1 / bound.bound : 0;
        }
        if (best.has_plan()) {
            const double gap = std::max({search_options.solve.mip_gap, search_options.tolerance, 1e-6});
            best.optimal = goal == RentalGoal::cost ? best.cost - best.cost_bound <= gap * best.cost
                           : instance_.has_rates()  ? best.rate_bound - best.rate <= gap * best.rate
                                                    : best.makespan - best.bound <= gap * best.makespan;
            if (cheapest_ && best.cost > *cheapest_ * (1 + gap))
                best.message = "fewest starts within slack";
            else if (!best.optimal && best.message.empty())
                best.message = instance_.any_targets()
                                   ? "the bound ignores queueing; a cheaper plan may meet the targets"
                                   : "the solver stopped before it proved the plan optimal";
        }
        const bool refused =
            !best.has_plan() && !unfinished && (bound.status == milp::Status::infeasible || bound.has_plan());
        return {std::move(best), cheapest_, refused};
    }

  private:
    /// The outcome of a rental that fills replicas to some part of their capacity.
    enum class Outcome : std::uint8_t {
        kept,       ///< the plan meets the targets
        missed,     ///< the simulation of the plan misses a target: fill less
        no_rental,  ///< GPUs or budget do not suffice: fill more; also if there is no time left
    };

    /// Runs the searches below.
    /// @param least lower bound on the $/h
    void search(RentalGoal goal, double least) {
        if (!instance_.any_targets()) {
            attempt(goal, 1, false);
        } else {
            for (const bool separate : {false, true}) {
                if (separate && !instance_.any_shared()) continue;
                if (goal == RentalGoal::cost && best_ && best_->cost <= least * (1 + 1e-6)) break;
                fill(goal, separate);
                if (goal == RentalGoal::cost) spend_less(least, separate);
            }
            if (goal == RentalGoal::cost && (!best_ || best_->cost > least * (1 + 1e-6))) one_deployment();
        }
        if (goal == RentalGoal::cost && best_ && instance_.any_running()) start_few();
    }

    /// Searches the fullest replicas that meet the targets, by bisection. Fuller replicas need fewer GPUs and
    /// wait longer.
    void fill(RentalGoal goal, bool separate) {
        double low = least_part, high = 1;
        const auto whole = attempt(goal, 1, separate);
        if (whole == Outcome::no_rental) return;  // emptier replicas need more GPUs
        if (whole == Outcome::kept) {
            if (goal != RentalGoal::rate) return;  // `spend_less` tries fuller replicas
            low = 1, high = instance_.most_part();
        }
        for (int i = 0; i < 5 && high > low * 1.01; ++i) {
            const double middle = (low + high) / 2;
            (attempt(goal, middle, separate) == Outcome::missed ? high : low) = middle;
        }
    }

    /// Searches cheaper plans down to `least`, by bisection on the budget. For each budget it uses the part
    /// of the capacity of the plan with the highest rate, because its requests wait least.
    void spend_less(double least, bool separate) {
        double low = least;
        double high = best_ ? best_->cost : std::min(instance_.request().budget, instance_.all_money());
        for (int i = 0; i < 7; ++i) {
            if (instance_.out_of_time()) return;
            const bool first = !best_ && i == 0;  // the largest budget
            const double middle = first ? high : (low + high) / 2;
            if (!first && high - low <= 1e-6 * high) return;
            auto p = instance_.problem(1, separate);
            p.budget = middle;
            const auto most = instance_.solve(p, RentalGoal::rate);
            const double part = most.has_plan() ? (1 + 1e-6) / most.multiple : 0;
            const double before = best_ ? best_->cost : std::numeric_limits<double>::infinity();
            const bool kept = part > 0 && part <= instance_.most_part() * (1 + 1e-6) &&
                              attempt(RentalGoal::cost, part, separate) == Outcome::kept;
            if (first && !kept) return;
            if (kept)
                high = std::min(middle, best_->cost < before ? best_->cost : middle);
            else
                low = middle;
        }
    }

    /// Tries replicas of a single deployment that serve all kinds, starting from the fewest possible. The
    /// program adds up the capacities of kinds served alone, so it can prefer deployments that do worse in
    /// the simulation.
    void one_deployment() {
        if (instance_.request().models.size() != 1) return;
        struct Candidate {
            std::size_t deployment;
            double fewest;  ///< fewest replicas that can serve the rates
            double price;   ///< lower bound on the $/h of a replica
        };
        std::vector<Candidate> candidates;
        const auto whole = instance_.problem(1, false);
        for (std::size_t c = 0; c < whole.configurations.size(); ++c) {
            Candidate one{c, instance_.load(c, std::numeric_limits<double>::infinity()), 0};
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
            for (double replicas = one.fewest; replicas < one.fewest + counts_tried; ++replicas) {
                if (best_ && replicas * one.price >= best_->cost * (1 - 1e-9)) break;
                double low = least_part, high = instance_.most_part() * (1 + 1e-6);
                for (int i = 0; i < 40; ++i) {
                    const double middle = (low + high) / 2;
                    (instance_.load(one.deployment, middle) <= replicas ? high : low) = middle;
                }
                if (attempt(RentalGoal::cost, high, false, one.deployment) != Outcome::missed) break;
            }
    }

    /// Keeps the plan with the fewest starts, then the lowest cost, of the plans that cost at most `slack`
    /// more than the cheapest.
    void start_few() {
        cheapest_ = best_->cost;
        const double capacity = best_->capacity;
        const double money = std::min(instance_.request().budget, best_->cost * (1 + slack_) * (1 + 1e-9));
        for (const bool separate : {best_->separate, !best_->separate}) {
            if (separate && !instance_.any_shared()) continue;
            auto p = instance_.problem(capacity, separate);
            p.budget = money;
            const auto few = instance_.solve(p, RentalGoal::starts);
            // `low` starts do not suffice; `starts_` do.
            int low = few.has_plan() ? few.starts - 1 : starts_;
            while (starts_ - low > 1 && !instance_.out_of_time()) {
                const int middle = low == few.starts - 1 ? few.starts : (low + starts_) / 2;
                p.max_starts = middle;
                const auto cheap = solve_frugally(p, RentalGoal::cost);
                auto changed = cheap.has_plan() ? instance_.planned(p, cheap, separate) : ServingPlan{};
                if (cheap.has_plan() && latencies_.simulate(changed)) {
                    changed.capacity = capacity;
                    changed.separate = separate;
                    best_ = std::move(changed);
                    starts_ = cheap.starts;
                } else {
                    low = middle;
                }
            }
        }
    }

    /// Solves one rental, and keeps its plan if it meets the targets and is the best so far.
    /// @param only the only deployment to use; absent = all
    Outcome attempt(RentalGoal goal, double part, bool separate, std::optional<std::size_t> only = {}) {
        if (instance_.out_of_time()) return Outcome::no_rental;
        auto p = instance_.problem(part, separate);
        for (std::size_t c = 0; only && c < p.configurations.size(); ++c)
            if (c != *only)
                std::fill(p.configurations[c].throughput.begin(), p.configurations[c].throughput.end(), 0.0);
        const auto s = solve_frugally(p, goal);
        if (!s.has_plan()) return Outcome::no_rental;
        auto plan = instance_.planned(p, s, separate);
        if (!latencies_.simulate(plan)) return Outcome::missed;
        plan.capacity = part;
        plan.separate = separate;
        const bool better = !best_ ||
                            (goal == RentalGoal::rate ? plan.rate > best_->rate : plan.cost < best_->cost) ||
                            (!instance_.has_rates() && plan.makespan < best_->makespan);
        if (better) {
            best_ = std::move(plan);
            starts_ = s.starts;
        }
        return Outcome::kept;
    }

    /// Solves for the goal, for a rate also for its least cost, and if free GPUs are rented, for the fewest
    /// of them.
    [[nodiscard]] RentalSolution solve_frugally(RentalProblem p, RentalGoal goal) const {
        auto s = instance_.solve(p, goal);
        if (!s.has_plan()) return s;
        const auto improve = [&](RentalGoal next) {
            p.budget = s.cost * (1 + 1e-9);
            const auto better = instance_.solve(p, next);
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

    static constexpr double least_part = 0.2;  ///< smallest part of the capacity that is tried
    static constexpr int counts_tried = 6;     ///< numbers of replicas of a single deployment that are tried
    const RentalInstance& instance_;
    PlanLatencies latencies_;
    double slack_;
    std::optional<ServingPlan> best_{};
    std::optional<double> cheapest_{};
    int starts_ = 0;  ///< starts of the best plan
};

RentalOutcome plan_rental(const RentalInstance& instance, double slack) {
    return RatePlanner(instance, slack).run();
}

}  // namespace gpusched::serving::detail
