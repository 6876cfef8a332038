// SPDX-License-Identifier: Apache-2.0
// Plans of a batch: the problems of a composition, each solved, and the best plan of them.
#include "serving/instance.hpp"

#include <gpusched/core/budget.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace gpusched::serving::detail {

/// Routes requests evenly to all replicas that can serve them.
static void round_robin(const ServingProblem& problem, ServingAllocation& allocation) {
    for (std::size_t w = 0; w < problem.workloads.size(); ++w) {
        int replicas = 0;
        for (std::size_t c = 0; c < problem.configurations.size(); ++c)
            if (problem.configurations[c].throughput[w] > 0) replicas += allocation.replicas[c];
        for (std::size_t c = 0; c < problem.configurations.size(); ++c)
            allocation.share[c][w] = problem.configurations[c].throughput[w] > 0 && replicas > 0
                                         ? static_cast<double>(allocation.replicas[c]) / replicas
                                         : 0.0;
    }
}

/// Solves the problems of a composition, and keeps the best plan.
class BatchPlanner {
  public:
    BatchPlanner(const PlannerOptions& options, const milp::AnySolver& solver, const Context& context,
                 const ServingPlan& before)
        : options_(options), solver_(solver), context_(context), before_(before),
          budget_(context, options.search.solve.time_limit) {}

    ServingPlan run(const ServingRequest& request) {
        if (options_.composition == Composition::homogeneous) {
            if (request.gpus.empty()) each_degree(request);  // reports that there is no plan
            for (std::size_t g = 0; g < request.gpus.size(); ++g) {
                auto one = request;
                for (std::size_t n = 0; n < request.gpus.size(); ++n) one.available[n] = 0;
                const double price = *request.gpus[g].price;
                one.available[g] = price > 0 ? static_cast<int>(std::min(1e6, request.budget / price + 1e-9))
                                             : request.available[g];
                each_degree(one);
            }
        } else if (options_.composition == Composition::uniform) {
            auto even = request;
            double together = 0;
            for (std::size_t g = 0; g < request.gpus.size(); ++g)
                if (request.available[g] > 0) together += *request.gpus[g].price;
            const double each = together > 0 ? std::min(1e9, request.budget / together + 1e-9) : 1e9;
            for (auto& count : even.available) count = std::min(count, static_cast<int>(each));
            each_degree(even);
        } else {
            each_degree(request);
        }
        if (!proved_) {
            best_.optimal = false;
            best_.status = unproved_;
        }
        if (best_.has_plan() && bound_ < best_.bound) best_.bound = bound_;
        if (best_.optimal && !options_.deadline && !is_proved(best_.makespan, best_.bound)) {
            best_.optimal = false;
            best_.status = milp::Status::feasible;
        }
        best_.deployments = deployments_;
        best_.left_out = left_out_;
        if (better(before_, best_)) take_before();
        return std::move(best_);
    }

  private:
    /// Returns the plan for the smaller budget, with the bound of this one.
    void take_before() {
        if (!best_.has_plan()) best_.bound = bound_ < before_.makespan ? bound_ : 0;
        if (best_.status == milp::Status::infeasible) best_.status = milp::Status::failed;
        best_.replicas = before_.replicas;
        best_.rented = before_.rented;
        best_.rentals = before_.rentals;
        best_.cost = before_.cost;
        best_.makespan = before_.makespan;
        best_.requests_per_s = before_.requests_per_s;
        best_.cost_per_request = before_.cost_per_request;
        best_.bound = std::min(best_.bound, before_.makespan);
    }

    [[nodiscard]] bool better(const ServingPlan& a, const ServingPlan& b) const {
        const auto key = [&](const ServingPlan& r) { return options_.deadline ? r.cost : r.makespan; };
        return a.has_plan() && (!b.has_plan() || key(a) < key(b));
    }

    void each_degree(const ServingRequest& request) {
        if (!options_.uniform_tp || options_.deployments.degrees.empty()) return once(request, options_);
        for (const auto degree : options_.deployments.degrees) {
            auto options = options_;
            options.deployments.degrees = {degree};
            options.deployments.max_stages = 1;
            once(request, options);
        }
    }

    /// Seconds of the time limit that are left until only `rest` of them remain; none without a limit.
    [[nodiscard]] std::optional<double> until(double rest) const {
        const auto left = budget_.remaining_s();
        return left ? std::optional(std::max(0.0, *left - rest)) : std::nullopt;
    }

    /// Solves one problem.
    /// @param rest    seconds of the time limit that it leaves
    /// @param shares  problems that share the time until then
    [[nodiscard]] ServingSolution solve(const ServingProblem& problem, double rest = 0,
                                        double shares = 1) const {
        auto search = options_.search;
        if (const auto left = until(rest)) search.solve.time_limit = *left / shares;
        auto plan = options_.deadline
                        ? cheapest_serving_plan(problem, *options_.deadline, search, solver_, context_)
                        : solve_serving_plan(problem, search, solver_, context_);
        if (plan.has_plan() && options_.routing == Routing::round_robin) {
            round_robin(problem, plan.allocation);
            plan.bound = 0;
            plan.optimal = false;
            if (plan.status == milp::Status::optimal) plan.status = milp::Status::feasible;
        }
        return plan;
    }

    /// Finds the best plan with a single GPU type, and adds its configurations to `used`.
    /// @param rest  seconds of the time limit that it leaves
    ServingPlan single_type(const ServingRequest& request, const ServingInstance& all, double rest,
                            std::vector<int>& used) const {
        ServingPlan best;
        const auto types = request.gpus.size();
        for (std::size_t g = 0; g < types; ++g) {
            std::vector<int> alone;
            for (std::size_t c = 0; c < all.problem.configurations.size(); ++c) {
                const auto& one = all.problem.configurations[c];
                if (one.gpus[g] > 0 && type_count(one) == 1) alone.push_back(static_cast<int>(c));
            }
            if (alone.empty() || alone.size() == all.deployments.size()) continue;
            std::vector<int> unused;
            const auto keep = chosen(all.problem, alone, options_.max_deployments, unused);
            const auto one = kept(all, keep);
            const auto plan = solve(one.problem, rest, static_cast<double>(types - g));
            auto found = described(request, one, plan);
            if (!better(found, best)) continue;
            best = std::move(found);
            used.clear();
            for (std::size_t i = 0; i < keep.size(); ++i)
                if (plan.allocation.replicas[i] > 0) used.push_back(keep[i]);
        }
        return best;
    }

    /// Solves the problem of a smaller space: fewer GPU types in a replica, and no more deployments than by
    /// default. Keeps its plan if it is better than `best`, and adds its configurations to `used`.
    /// @param rest  seconds of the time limit that it leaves
    void smaller_space(const ServingRequest& request, const ServingInstance& all, double rest,
                       ServingPlan& best, std::vector<int>& used) const {
        std::ptrdiff_t most_types = 0;
        const auto types = [&](std::size_t c) { return type_count(all.problem.configurations[c]); };
        for (std::size_t c = 0; c < all.deployments.size(); ++c) most_types = std::max(most_types, types(c));
        const int usual = PlannerOptions{}.max_deployments;
        const bool many = options_.max_deployments == 0 || options_.max_deployments > usual;
        if (most_types <= 2 && !many) return;
        std::vector<int> fewer;
        for (std::size_t c = 0; c < all.deployments.size(); ++c)
            if (types(c) <= std::max<std::ptrdiff_t>(2, most_types - 1)) fewer.push_back(static_cast<int>(c));
        std::vector<int> unused;
        auto keep = chosen(all.problem, fewer, many ? usual : options_.max_deployments, unused);
        add_configurations(keep, used);
        some(request, all, keep, rest, best, used);
    }

    /// Solves the problem with the configurations `keep`. Keeps its plan if it is better than `best`, and adds
    /// its configurations to `used`.
    /// @param rest  seconds of the time limit that it leaves
    void some(const ServingRequest& request, const ServingInstance& all, const std::vector<int>& keep,
              double rest, ServingPlan& best, std::vector<int>& used) const {
        const auto one = kept(all, keep);
        const auto plan = solve(one.problem, rest);
        auto found = described(request, one, plan);
        if (!better(found, best)) return;
        best = std::move(found);
        for (std::size_t i = 0; i < keep.size(); ++i)
            if (plan.allocation.replicas[i] > 0) used.push_back(keep[i]);
    }

    /// The configurations of `of` that a plan better than `value` can use: seconds, with a deadline $/h.
    ///
    /// At any prices of money and GPUs, a replica does work worth at most its price. So the other replicas of a
    /// plan with a replica of c must pay for all work but that of c, and all of them for no more than there is.
    [[nodiscard]] std::vector<int> possibly_better(const ServingProblem& problem, const std::vector<int>& of,
                                                   double value) const {
        const auto costs = configuration_costs(problem);
        const auto W = problem.workloads.size(), N = problem.gpus.size();
        std::vector<bool> useless(costs.size(), false);
        const auto at_prices = [&](double money, const std::vector<double>& gpu, double have, double time) {
            std::vector<double> price, least(W, std::numeric_limits<double>::infinity());
            for (std::size_t c = 0; c < costs.size(); ++c) {
                const auto& one = problem.configurations[c];
                price.push_back(money * costs[c]);
                for (std::size_t n = 0; n < N; ++n) price.back() += gpu[n] * one.gpus[n];
                for (std::size_t w = 0; w < W; ++w)
                    if (one.throughput[w] > 0)
                        least[w] = std::min(least[w], price.back() / one.throughput[w]);
            }
            double all = 0;
            for (std::size_t w = 0; w < W; ++w)
                if (problem.workloads[w].requests > 0) all += problem.workloads[w].requests * least[w] / time;
            for (const auto c : of) {
                const auto i = static_cast<std::size_t>(c);
                double worth = 0;
                for (std::size_t w = 0; w < W; ++w)
                    if (problem.workloads[w].requests > 0 && problem.configurations[i].throughput[w] > 0)
                        worth = std::max(worth, least[w] * problem.configurations[i].throughput[w]);
                if (price[i] + std::max(0.0, all - worth) > have * (1 + 1e-9)) useless[i] = true;
            }
        };
        const std::vector<double> none(N, 0.0);
        if (options_.deadline) {
            at_prices(1, none, value, *options_.deadline);
        } else {
            at_prices(1, none, problem.budget, value);
            std::vector<double> mixed(N, 0.0);
            for (std::size_t n = 0; n < N; ++n) {
                auto one = none;
                one[n] = 1;
                at_prices(0, one, problem.gpus[n].available, value);
                if (problem.gpus[n].available > 0) mixed[n] = 1.0 / problem.gpus[n].available;
            }
            if (problem.budget > 0) at_prices(1 / problem.budget, mixed, 1.0 + static_cast<double>(N), value);
        }
        std::vector<int> rest;
        std::copy_if(of.begin(), of.end(), std::back_inserter(rest),
                     [&](int c) { return !useless[static_cast<std::size_t>(c)]; });
        return rest;
    }

    /// After an optimal plan of the deployments in `keep`: solves again with those of the others that can be
    /// part of a better plan, if they are not many, and extends the bound to all.
    /// @return `feasible`, or the status of a search that was stopped
    milp::Status prove(const ServingInstance& all, std::vector<int>& keep, ServingSolution& plan,
                       LowerBound& bound, const PlannerOptions& options) const {
        std::vector<int> others;
        for (int c = 0; c < static_cast<int>(all.deployments.size()); ++c)
            if (!std::binary_search(keep.begin(), keep.end(), c)) others.push_back(c);
        const auto value = [&](const ServingSolution& s) { return options_.deadline ? s.cost : s.makespan; };
        const auto least = [&](const ServingSolution& s) {
            return options_.deadline ? s.cost * (1 - gap()) : s.bound;
        };
        double proved = least(plan);
        const auto rest = possibly_better(all.problem, others, value(plan));
        if (rest.size() > static_cast<std::size_t>(options.max_deployments)) return milp::Status::feasible;
        if (!rest.empty()) {
            auto wider = keep;
            add_configurations(wider, rest);
            auto again = solve(with_configurations(all.problem, wider));
            const bool sure = again.optimal;
            const auto status = again.status;
            if (sure) proved = std::min(proved, least(again));
            if (again.has_plan() && value(again) <= value(plan)) {
                plan = std::move(again);
                keep = std::move(wider);
            }
            if (!sure) {
                if (context_.stop.stop_requested()) return milp::Status::cancelled;
                const bool late = budget_.remaining_s() == 0.0 || status == milp::Status::time_limit;
                return late ? milp::Status::time_limit : milp::Status::feasible;
            }
        }
        bound.value = std::max(bound.value, proved);
        return milp::Status::feasible;
    }

    [[nodiscard]] double gap() const {
        const auto& search = options_.search;
        return std::max({search.solve.mip_gap, search.tolerance, 1e-6});
    }

    /// Whether a bound proves a value optimal.
    [[nodiscard]] bool is_proved(double value, double bound) const {
        return value - bound <= gap() * (1 + 1e-9) * value;
    }

    /// Extends the bound of a plan to the deployments that were left out, and drops the claim that the plan is
    /// optimal unless this bound proves it.
    /// @param unproved  the status of a plan that it does not prove
    void bound_all(ServingPlan& plan, const LowerBound& all, milp::Status unproved) const {
        plan.bound = std::min(plan.bound, options_.deadline ? all.makespan : all.value);
        if (!plan.has_plan() || !plan.optimal) return;
        const double value = options_.deadline ? plan.cost : plan.makespan;
        plan.optimal = is_proved(value, all.value);
        if (plan.optimal) return;
        plan.status = unproved;
        plan.message = "the best plan of the deployments considered; " + std::to_string(plan.left_out) +
                       " were left out (max_deployments), and the bound includes them";
    }

    /// Solves the problem of one request, and keeps its plan if it is the best so far.
    void once(const ServingRequest& request, const PlannerOptions& options) {
        bool ended = false;
        auto all = all_deployments(request, options, [&] { return ended = ended || budget_.exhausted(); });
        const auto possible = static_cast<int>(all.deployments.size());
        if (ended) {
            bound_ = 0;
            proved_ = false;
            unproved_ = budget_.reason() == StopReason::cancelled ? milp::Status::cancelled
                                                                  : milp::Status::time_limit;
            if (first_) best_.message = enumeration_ended;
            if (first_) best_.rented.assign(request.gpus.size(), 0);
            first_ = false;
            return;
        }
        all = kept(all, undominated_configurations(all.problem));
        auto instance = selected(all, options.max_deployments);
        LowerBound bound;
        const double time = budget_.remaining_s().value_or(0);
        if (instance.left_out > 0) {
            auto solve = options.search.solve;
            if (const auto left = until(0.9 * time)) solve.time_limit = left;
            bound = lower_bound(all.problem, options.deadline, solve, solver_, context_);
        }
        // Plans of smaller spaces are quick to find. They can be better than the plan found among all
        // deployments if time is short or deployments are left out. The deployments of the best such plan are
        // not left out.
        ServingPlan single;
        std::vector<int> used;  // the deployments that are not left out
        if (options.search.solve.time_limit || instance.left_out > 0) {
            single = single_type(request, all, 0.7 * time, used);
            auto few = bound.used;  // those of the linear program
            add_configurations(few, used);
            if (!bound.used.empty()) some(request, all, few, 0.5 * time, single, used);
            smaller_space(request, all, 0.25 * time, single, used);
        }
        for (const auto& replicas : before_.replicas)
            for (const auto c : configurations_of(all, replicas)) used.push_back(static_cast<int>(c));
        used.insert(used.end(), bound.used.begin(), bound.used.end());
        std::vector<int> every(all.deployments.size()), keep;
        std::iota(every.begin(), every.end(), 0);
        if (instance.left_out > 0) {
            const auto fewer = best_of_fewer_types(all.problem, every, options.max_deployments, true);
            used.insert(used.end(), fewer.begin(), fewer.end());
            std::vector<int> dropped;
            keep = chosen(all.problem, every, options.max_deployments, dropped);
            add_configurations(keep, used);
            instance = kept(all, keep);
            instance.left_out = static_cast<int>(without(dropped, keep).size());
        }
        auto plan = solve(instance.problem);
        if (plan.status == milp::Status::infeasible && instance.left_out > 0) {
            instance = selected(all, 0);
            plan = solve(instance.problem);
        }
        auto unproved = milp::Status::feasible;
        if (instance.left_out > 0 && plan.optimal &&
            !is_proved(options_.deadline ? plan.cost : plan.makespan, bound.value)) {
            const auto before = keep.size();
            unproved = prove(all, keep, plan, bound, options);
            const auto left_out = instance.left_out - static_cast<int>(keep.size() - before);
            instance = kept(all, keep);
            instance.left_out = left_out;
        }
        deployments_ += possible;
        left_out_ += instance.left_out;
        auto found = described(request, instance, plan);
        if (instance.left_out > 0) bound_all(found, bound, unproved);
        if (found.status != milp::Status::optimal && found.status != milp::Status::infeasible && proved_) {
            proved_ = false;
            unproved_ = found.status;
        }
        if (found.status != milp::Status::infeasible) bound_ = std::min(bound_, found.bound);
        if (!found.optimal && better(single, found)) {
            single.status = found.status == milp::Status::infeasible ? milp::Status::feasible : found.status;
            single.bound =
                found.status == milp::Status::infeasible ? 0 : std::min(found.bound, single.makespan);
            single.optimal = false;
            single.message = found.message;
            found = std::move(single);
        }
        if (first_ || better(found, best_)) best_ = std::move(found);
        first_ = false;
    }

    const PlannerOptions& options_;
    const milp::AnySolver& solver_;
    const Context& context_;
    const ServingPlan& before_;
    Budget budget_;
    ServingPlan best_;
    double bound_ = std::numeric_limits<double>::infinity();
    int deployments_ = 0, left_out_ = 0;
    bool first_ = true, proved_ = true;
    milp::Status unproved_ = milp::Status::failed;
};

ServingPlan plan_batch(const ServingRequest& request, const PlannerOptions& options,
                       const milp::AnySolver& solver, const Context& context, const ServingPlan& before) {
    return BatchPlanner(options, solver, context, before).run(request);
}

}  // namespace gpusched::serving::detail
