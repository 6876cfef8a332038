// SPDX-License-Identifier: Apache-2.0
// RatePlanner: attempts rentals with different loads of replicas, simulates them, and keeps the best.
#include "serving/rate_planner.hpp"
#include "serving/calibrator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

ServingPlan RatePlanner::run() {
    const auto& search_options = instance_.options().search;
    const auto goal = instance_.goal();
    const auto bound = instance_.solve(instance_.problem(1, false, false), goal);
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
        if (cheapest_ && best.cost > cheapest_->cost * (1 + gap))
            best.message = "fewest starts within slack";
        else if (!best.optimal && best.message.empty())
            best.message = instance_.any_targets()
                               ? "the bound ignores queueing; a cheaper plan may meet the targets"
                               : "the solver stopped before it proved the plan optimal";
    }
    refused_ = !best.has_plan() && (bound.status == milp::Status::infeasible || bound.has_plan());
    return best;
}

void RatePlanner::search(RentalGoal goal, double least) {
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

void RatePlanner::fill(RentalGoal goal, bool separate) {
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

void RatePlanner::spend_less(double least, bool separate) {
    double low = least;
    double high = best_ ? best_->cost : std::min(instance_.request().budget, instance_.all_money());
    for (int i = 0; i < 7; ++i) {
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

void RatePlanner::one_deployment() {
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

void RatePlanner::start_few() {
    cheapest_ = best_;
    const double money = std::min(instance_.request().budget, best_->cost * (1 + slack_) * (1 + 1e-9));
    for (const bool separate : {best_->separate, !best_->separate}) {
        if (separate && !instance_.any_shared()) continue;
        auto p = instance_.problem(cheapest_->capacity, separate);
        p.budget = money;
        const auto few = instance_.solve(p, RentalGoal::starts);
        // `low` starts do not suffice; `starts_` do.
        int low = few.has_plan() ? few.starts - 1 : starts_;
        while (starts_ - low > 1) {
            const int middle = low == few.starts - 1 ? few.starts : (low + starts_) / 2;
            p.max_starts = middle;
            const auto cheap = solve_frugally(p, RentalGoal::cost);
            auto changed = cheap.has_plan() ? instance_.planned(p, cheap, separate) : ServingPlan{};
            if (cheap.has_plan() && latencies_.simulate(changed)) {
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

RatePlanner::Outcome RatePlanner::attempt(RentalGoal goal, double part, bool separate,
                                          std::optional<std::size_t> only) {
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

RentalSolution RatePlanner::solve_frugally(RentalProblem p, RentalGoal goal) const {
    auto s = instance_.solve(p, goal);
    if (!s.has_plan()) return s;
    const auto improve = [&](RentalGoal next) {
        p.budget = s.cost * (1 + 1e-9);
        const auto better = instance_.solve(p, next);
        if (!better.has_plan() || better.cost > s.cost * (1 + 1e-9)) return;
        s.replicas = better.replicas, s.share = better.share, s.usual = better.usual, s.spot = better.spot;
        s.cost = better.cost, s.starts = better.starts;
    };
    if (goal == RentalGoal::rate) {
        for (auto& workload : p.workloads) workload.requests *= s.multiple;
        improve(RentalGoal::cost);
    }
    for (std::size_t n = 0; n < p.offers.size(); ++n)
        if ((s.usual[n] > 0 && p.offers[n].price <= 0) || (s.spot[n] > 0 && p.offers[n].spot_price <= 0)) {
            improve(RentalGoal::gpus);
            break;
        }
    return s;
}

}  // namespace gpusched::serving::detail
