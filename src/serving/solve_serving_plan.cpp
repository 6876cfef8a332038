// SPDX-License-Identifier: Apache-2.0
// The serving problem solved: greedily, directly, by binary search on the makespan, or for the least cost.
#include "serving/instance.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/serving/solve_serving_plan.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving {

namespace detail {

/// A problem in scaled units, so that solver tolerances mean the same for all problems: time in units of a
/// bound, money in units of the budget. Units are powers of two, which loses no digits. Unusable
/// configurations are dropped.
struct ScaledServing {
    ServingProblem problem{};
    std::vector<int> kept{};  ///< indices in the original problem
    double second = 1;        ///< unit of time, in seconds
    double dollar = 1;        ///< unit of money, in $/h

    ScaledServing(const ServingProblem& whole, bool prune) {
        const auto most = most_replicas(whole);
        std::vector<int> usable;
        for (std::size_t c = 0; c < most.size(); ++c)
            if (most[c] > 0) usable.push_back(static_cast<int>(c));
        problem = with_configurations(whole, usable);
        kept = std::move(usable);
        if (prune) {
            auto better = undominated_configurations(problem);
            problem = with_configurations(problem, better);
            for (auto& c : better) c = kept[static_cast<std::size_t>(c)];
            kept = std::move(better);
        }
        const auto power = [](double x) { return std::ldexp(1.0, std::ilogb(x)); };
        for (const double time : {closed_form_bound(problem), slowest_makespan(problem)})
            if (time > 0 && std::isfinite(time)) {
                second = power(time);
                break;
            }
        for (auto& w : problem.workloads)
            if (w.requests > 0) w.requests = std::max(w.requests / second, 1e-30);
        double all = 0;
        for (const auto& gpu : problem.gpus) all += gpu.price * gpu.available;
        problem.budget = std::min(problem.budget, all * (1 + 1e-9));
        if (problem.budget <= 0) return;
        dollar = power(problem.budget);
        problem.budget /= dollar;
        for (auto& gpu : problem.gpus) gpu.price /= dollar;
    }
};

/// The plan in units and indices of the original problem.
inline ServingSolution unscaled(ServingSolution plan, const ServingProblem& problem,
                                const ScaledServing& scaled) {
    plan.bound *= scaled.second;
    if (!plan.has_plan()) return plan;
    ServingAllocation all{
        std::vector<int>(problem.configurations.size(), 0),
        std::vector<std::vector<double>>(problem.configurations.size(),
                                         std::vector<double>(problem.workloads.size(), 0.0))};
    for (std::size_t i = 0; i < scaled.kept.size(); ++i) {
        const auto c = static_cast<std::size_t>(scaled.kept[i]);
        all.replicas[c] = plan.allocation.replicas[i];
        all.share[c] = plan.allocation.share[i];
    }
    plan.allocation = std::move(all);
    plan.makespan = makespan(problem, plan.allocation);
    plan.cost = cost(problem, plan.allocation);
    plan.bound = std::min(plan.bound, plan.makespan);
    return plan;
}

/// One run of the greedy algorithm.
class GreedyServing {
  public:
    /// @param time  limit, or null
    GreedyServing(const ServingProblem& problem, double makespan, Budget* time)
        : problem_(problem), makespan_(makespan), time_(time), costs_(configuration_costs(problem)),
          budget_(problem.budget), left_(problem.workloads.size(), 0.0) {
        for (const auto& gpu : problem.gpus) gpus_.push_back(gpu.available);
        for (std::size_t w = 0; w < left_.size(); ++w) left_[w] = problem.workloads[w].requests > 0 ? 1 : 0;
        allocation_.replicas.assign(costs_.size(), 0);
        allocation_.share.assign(costs_.size(), std::vector<double>(left_.size(), 0.0));
    }

    std::optional<ServingAllocation> run() {
        while (std::any_of(left_.begin(), left_.end(), [](double share) { return share > 1e-12; }))
            if ((time_ != nullptr && time_->exhausted()) || !buy()) return std::nullopt;
        return std::move(allocation_);
    }

  private:
    /// The price of a replica: its cost and GPUs as parts of the remaining budget and GPUs.
    [[nodiscard]] double price(std::size_t c) const {
        double sum = budget_ > 0 ? costs_[c] / budget_ : 0;
        for (std::size_t n = 0; n < gpus_.size(); ++n)
            if (gpus_[n] > 0) sum += static_cast<double>(problem_.configurations[c].gpus[n]) / gpus_[n];
        return sum;
    }
    [[nodiscard]] bool affordable(std::size_t c) const {
        if (costs_[c] > budget_ * (1 + 1e-9) + 1e-12) return false;
        for (std::size_t n = 0; n < gpus_.size(); ++n)
            if (problem_.configurations[c].gpus[n] > gpus_[n]) return false;
        return true;
    }

    bool buy() {
        const auto C = costs_.size(), W = left_.size();
        // The worth of a workload: the lowest current price of serving all of it.
        std::vector<double> worth(W, milp::infinity), prices(C, 0.0);
        std::vector<bool> can(C, false);
        for (std::size_t c = 0; c < C; ++c) {
            can[c] = affordable(c);
            if (!can[c]) continue;
            prices[c] = price(c);
            for (std::size_t w = 0; w < W; ++w)
                if (problem_.configurations[c].throughput[w] > 0)
                    worth[w] = std::min(worth[w], problem_.workloads[w].requests * prices[c] /
                                                      problem_.configurations[c].throughput[w]);
        }
        std::size_t best = C;
        double best_value = 0;
        std::vector<double> best_fill, fill(W, 0.0);
        for (std::size_t c = 0; c < C; ++c) {
            if (!can[c]) continue;
            const auto& rate = problem_.configurations[c].throughput;
            const auto seconds = [&](std::size_t w) { return problem_.workloads[w].requests / rate[w]; };
            // The workloads with the most worth per second come first.
            const auto order = order_by(W, [&](std::size_t w) {
                return rate[w] > 0 && left_[w] > 0 ? -worth[w] / seconds(w) : milp::infinity;
            });
            double room = makespan_, value = 0;
            std::fill(fill.begin(), fill.end(), 0.0);
            for (const auto w : order) {
                if (room <= 0 || rate[w] <= 0 || left_[w] <= 0) continue;
                fill[w] = std::min(left_[w], room / seconds(w));
                room -= fill[w] * seconds(w);
                value += fill[w] * worth[w];
            }
            value /= prices[c];
            if (value > best_value) {
                best_value = value;
                best = c;
                best_fill = fill;
            }
        }
        if (best == C) return false;
        const int count = at_once(best, best_fill);
        allocation_.replicas[best] += count;
        budget_ -= count * costs_[best];
        for (std::size_t n = 0; n < gpus_.size(); ++n)
            gpus_[n] -= count * problem_.configurations[best].gpus[n];
        for (std::size_t w = 0; w < W; ++w) {
            allocation_.share[best][w] += count * best_fill[w];
            left_[w] -= count * best_fill[w];
            if (left_[w] < 1e-12) left_[w] = 0;
        }
        return true;
    }

    /// The number of replicas to add at once: one, or a part if hundreds of equal ones would follow, so that
    /// millions of replicas take no longer.
    [[nodiscard]] int at_once(std::size_t c, const std::vector<double>& fill) const {
        double most = 1e9;
        if (costs_[c] > 0) most = std::min(most, budget_ / costs_[c]);
        for (std::size_t n = 0; n < gpus_.size(); ++n)
            if (const int needs = problem_.configurations[c].gpus[n]; needs > 0)
                most = std::min(most, static_cast<double>(gpus_[n] / needs));
        for (std::size_t w = 0; w < fill.size(); ++w)
            if (fill[w] > 0) most = std::min(most, left_[w] / fill[w]);
        return most >= 256 ? static_cast<int>(most / 64) : 1;
    }

    const ServingProblem& problem_;
    double makespan_;
    Budget* time_;
    std::vector<double> costs_;
    double budget_;
    std::vector<int> gpus_;
    std::vector<double> left_;  // unserved share of each workload
    ServingAllocation allocation_;
};

/// The best greedy plan found within a time budget, or without a limit if it is null. The plan for the slowest
/// makespan, which is quick, ignores the budget.
static std::optional<ServingAllocation> search_greedily(const ServingProblem& problem, Budget* budget) {
    double high = slowest_makespan(problem), low = closed_form_bound(problem);
    auto best = GreedyServing(problem, std::max(high, 1e-9), nullptr).run();
    if (!best || high <= 0 || !std::isfinite(low)) return best;
    high = std::min(high, makespan(problem, *best));
    while (high - low > 1e-3 * high && (budget == nullptr || !budget->exhausted())) {
        const double middle = low > 0 && high > 4 * low ? std::sqrt(low * high) : (low + high) / 2;
        if (auto found = GreedyServing(problem, middle, budget).run()) {
            high = std::min(middle, makespan(problem, *found));
            best = std::move(found);
        } else {
            low = middle;
        }
    }
    return best;
}

/// One call of `solve_serving_plan`.
class ServingSearch {
  public:
    ServingSearch(const ServingProblem& problem, const ServingSearchOptions& options,
                  const milp::AnySolver& solver, const Context& context)
        : problem_(problem), options_(options), solver_(solver), context_(context),
          budget_(context, options.solve.time_limit) {
        lower_ = closed_form_bound(problem);
        plan_.solver = solver.name();
    }

    ServingSolution run() {
        start();
        if (options_.method == ServingMethod::milp)
            direct();
        else
            search();
        return finish();
    }

    ServingSolution cheapest(double makespan) {
        within_ = makespan * (1 + 1e-5);  // allows for the tolerance of solvers
        const double closed = lower_;
        double least = 0;  // lower bound of the solver on the $/h
        for (const double part : {1.0, less_money}) {
            const auto solution = cheapest_within(makespan, part);
            if (solution.has_solution()) {
                consider(decoded_);
                // A bound with less money is no bound.
                if (part == 1.0) least = solution.bound;
            }
            if (plan_.status == milp::Status::infeasible) return std::move(plan_);
            plan_.status = solution.status;
            plan_.message = solution.message;
            if (!solution.has_solution() || plan_.has_plan()) break;
        }
        if (plan_.has_plan()) {
            plan_.cost = cost(problem_, plan_.allocation);
            settle(plan_.cost, least);
        } else if (plan_.status == milp::Status::infeasible || plan_.status == milp::Status::optimal) {
            plan_.status = milp::Status::failed;
            plan_.message = "the solver returned an invalid plan";
        }
        plan_.bound = closed;
        return std::move(plan_);
    }

  private:
    [[nodiscard]] bool done() const {
        return plan_.has_plan() && upper_ - lower_ <= options_.tolerance * upper_;
    }
    [[nodiscard]] milp::SolveOptions solve_options() {
        auto options = options_.solve;
        options.start.clear();
        options.time_limit = budget_.remaining_s();
        return options;
    }
    milp::Solution ask(const milp::Model& model, const milp::SolveOptions& options) {
        ++plan_.solver_calls;
        return solve(model, options, solver_, context_);
    }
    [[nodiscard]] ServingMilp fixed(double makespan, bool minimise_cost, double part = 1) const {
        return serving_milp(
            part < 1 ? with_less_money() : problem_,
            {.form = ServingForm::fixed_makespan, .makespan = makespan, .minimise_cost = minimise_cost});
    }
    /// The problem with a slightly smaller budget: solutions within the tolerance of a solver fit into the
    /// real one.
    [[nodiscard]] ServingProblem with_less_money() const {
        auto problem = problem_;
        problem.budget *= less_money;
        return problem;
    }

    /// Solves one model of the cheapest plan; its solution is left in `decoded_`. Sets the status of the plan
    /// to `infeasible` if that was confirmed.
    milp::Solution cheapest_within(double makespan, double part) {
        const auto model = fixed(makespan, true, part);
        auto options = solve_options();
        auto solution = ask(model, options);
        if (solution.status == milp::Status::infeasible && part == 1.0) {
            if (refuted(makespan)) {
                plan_.status = milp::Status::infeasible;
                return solution;
            }
            options = solve_options();
            options.presolve = false;
            solution = ask(model, options);
            if (solution.status == milp::Status::infeasible)
                solution.message = "the solver contradicts itself about whether there is a plan";
        }
        if (solution.has_solution()) decoded_ = model.decode(solution.x);
        return solution;
    }

    /// Sets `optimal`, status and message of a plan with this value (seconds, or $/h with a deadline) and a
    /// lower bound on it.
    void settle(double value, double bound) {
        const double gap = std::max({options_.solve.mip_gap, options_.tolerance, finest});
        plan_.optimal = value - bound <= gap * value;
        if (plan_.optimal) {
            plan_.status = milp::Status::optimal;
            plan_.message.clear();
        } else if (plan_.status == milp::Status::optimal) {
            plan_.status = milp::Status::failed;
            plan_.message =
                "the solver returned an invalid plan as optimal; its bound is better than the plan found";
        } else if (plan_.status == milp::Status::infeasible) {
            plan_.status = milp::Status::failed;
            if (plan_.message.empty()) plan_.message = "the solver wrongly says that there is no plan";
        } else if (plan_.message.empty()) {
            plan_.message = std::string("the solver stopped: ") + enum_name(plan_.status);
        }
    }

    /// Keeps the allocation, with the best routing to its replicas, if it is better than the known plan:
    /// faster or, with a deadline, cheaper.
    void consider(ServingAllocation allocation) {
        const auto routing = serving_routing(problem_, allocation.replicas);
        auto options = solve_options();
        options.time_limit.reset();  // a small linear program, so that no found plan is lost
        const auto solution = ask(routing, options);
        if (solution.has_solution()) {
            auto routed = routing.decode(solution.x);
            if (makespan(problem_, routed) <= makespan(problem_, allocation)) allocation = std::move(routed);
        }
        // Costs are exact: a solver can exceed the budget within its tolerance.
        const double spent = cost(problem_, allocation);
        if (spent > problem_.budget * (1 + 1e-9) + 1e-12 || !violations(problem_, allocation).empty()) return;
        const double T = makespan(problem_, allocation);
        if (within_) {
            if (T > *within_) return;
            const double known = plan_.has_plan() ? cost(problem_, plan_.allocation) : milp::infinity;
            if (std::pair(spent, T) >= std::pair(known, upper_)) return;
        } else if (plan_.has_plan() && T >= upper_) {
            return;
        }
        upper_ = plan_.makespan = T;
        plan_.allocation = std::move(allocation);
    }

    void start() {
        if (auto greedy = search_greedily(problem_, &budget_)) consider(std::move(*greedy));
        const auto solution = ask(serving_bound(problem_), solve_options());
        // Only its bound is used; an "infeasible" proves nothing here.
        if (solution.status == milp::Status::optimal)
            lower_ = std::max(lower_, std::min(solution.bound, solution.objective) * (1 - 1e-9));
        certain_ = std::min(lower_, upper_);
    }

    void direct() {
        const auto model = serving_milp(problem_, {.form = options_.form});
        auto options = solve_options();
        if (options_.warm_start && plan_.has_plan()) options.start = model.encode(plan_.allocation);
        auto solution = ask(model, options);
        if (solution.status == milp::Status::infeasible) {
            if (!plan_.has_plan() && refuted(std::max(slowest_makespan(problem_), 1e-9))) {
                plan_.status = milp::Status::infeasible;
                return;
            }
            options = solve_options();
            options.presolve = false;
            solution = ask(model, options);
        }
        if (solution.has_solution()) {
            const auto found = model.decode(solution.x);
            consider(found);
            lower_ = std::max(lower_, std::min(model.makespan_of(solution.bound), upper_));
            certain_ = lower_;
            if (!done() && cost(problem_, found) > problem_.budget) {
                const auto poorer = serving_milp(with_less_money(), {.form = options_.form});
                if (const auto other = ask(poorer, solve_options()); other.has_solution())
                    consider(poorer.decode(other.x));
            }
        }
        plan_.status = solution.status;
        plan_.message = solution.message;
        if (solution.status == milp::Status::optimal && !plan_.has_plan()) {
            // The solution is valid only within the tolerance of the solver.
            const bool none = refuted(std::max(slowest_makespan(problem_), 1e-9));
            plan_.status = none               ? milp::Status::infeasible
                           : plan_.has_plan() ? milp::Status::optimal
                                              : milp::Status::failed;
            if (plan_.status == milp::Status::failed) plan_.message = "the solver returned an invalid plan";
        } else if (solution.status == milp::Status::infeasible && !plan_.has_plan()) {
            plan_.status = milp::Status::failed;
            plan_.message = "the solver wrongly says that there is no plan";
        }
    }

    enum class Answer : std::uint8_t { yes, no, unknown };

    /// Whether there is a plan within T. The solver must answer no twice; a yes comes with the plan.
    Answer feasible(double T) {
        if (options_.greedy_first) {
            if (auto greedy = GreedyServing(problem_, T, &budget_).run()) {
                consider(std::move(*greedy));
                if (upper_ <= T * (1 + 1e-5)) return Answer::yes;
            }
        }
        for (const double part : {1.0, less_money}) {
            const auto model = fixed(T, false, part);
            auto options = solve_options();
            bool unaffordable = false;
            for (const bool presolve : {options_.solve.presolve, false}) {
                options.presolve = presolve;
                const auto solution = ask(model, options);
                if (solution.has_solution()) {
                    consider(model.decode(solution.x));
                    if (upper_ <= T * (1 + 1e-5)) return Answer::yes;
                    plan_.message = "the solver returned an invalid plan";
                    last_ = milp::Status::failed;
                    unaffordable = true;
                    break;
                }
                last_ = solution.status;
                if (solution.status != milp::Status::infeasible) {
                    plan_.message = solution.message;
                    if (budget_.exhausted()) return Answer::unknown;
                }
            }
            // A no with less money proves less; the final no is confirmed with all of it.
            if (last_ == milp::Status::infeasible) return Answer::no;
            if (!unaffordable) break;
        }
        return Answer::unknown;
    }

    /// Proves with the elastic form that no plan is within T, if some requests must stay unserved. Keeps a
    /// plan found on the way.
    bool refuted(double T) {
        const auto model = fixed(T, false);
        if (model.rows_in("coverage") == 0) return false;  // without requests, no replica is a plan
        const auto soft = elastic(model, {"coverage"});
        auto options = solve_options();
        for (const bool presolve : {options_.solve.presolve, false}) {
            options.presolve = presolve;
            const auto solution = ask(soft, options);
            last_ = solution.status;
            if (!solution.has_solution()) continue;  // it always has one, so the solver failed
            if (solution.status == milp::Status::optimal && solution.objective > 1e-7 &&
                solution.bound > 1e-7)
                return true;
            if (solution.objective <= 1e-6)
                consider(model.decode(
                    std::span(solution.x).first(static_cast<std::size_t>(soft.original_columns))));
            return false;
        }
        return false;
    }

    void search() {
        if (!plan_.has_plan()) {
            const double widest = std::max(slowest_makespan(problem_), 1e-9);
            if (std::isinf(lower_) || feasible(widest) != Answer::yes) {
                if (refuted(widest))
                    plan_.status = milp::Status::infeasible;
                else if (!plan_.has_plan())
                    plan_.status = last_ == milp::Status::infeasible ? milp::Status::failed : last_;
                if (!plan_.has_plan()) return;
            }
        }
        lower_ = std::min(lower_, upper_);
        certain_ = std::min(certain_, upper_);
        for (int attempt = 0; attempt < 3; ++attempt) {
            auto answer = Answer::yes;
            while (!done() && answer != Answer::unknown) {
                const double middle = (lower_ + upper_) / 2;
                const double before = upper_;
                answer = budget_.exhausted() ? Answer::unknown : feasible(middle);
                if (answer == Answer::no) lower_ = middle;
                // A plan that is no better means that only rounding errors are left.
                if (answer == Answer::yes && upper_ >= before) break;
            }
            if (answer == Answer::unknown) {
                plan_.status = budget_.reason() == StopReason::cancelled ? milp::Status::cancelled
                               : budget_.exhausted()                     ? milp::Status::time_limit
                                                                         : last_;
                break;
            }
            // The largest T without a plan implies all smaller ones, so one proof is enough.
            const double before = upper_;
            if (lower_ <= certain_ || refuted(lower_)) {
                certain_ = lower_;
                plan_.status = milp::Status::optimal;
                break;
            }
            lower_ = certain_;
            plan_.status = budget_.exhausted() ? milp::Status::time_limit : milp::Status::failed;
            plan_.message = "the solver's answer that there is no plan could not be confirmed";
            if (upper_ >= before) break;
            plan_.message.clear();
        }
        lower_ = certain_;
    }

    ServingSolution finish() {
        plan_.bound = std::min(lower_, upper_);
        if (plan_.has_plan()) {
            plan_.makespan = upper_;
            plan_.cost = cost(problem_, plan_.allocation);
            settle(upper_, plan_.bound);
        }
        return std::move(plan_);
    }

    static constexpr double finest = 1e-6;  // solvers prove nothing finer
    static constexpr double less_money = 1 - 1e-5;
    const ServingProblem& problem_;
    const ServingSearchOptions& options_;
    const milp::AnySolver& solver_;
    const Context& context_;
    Budget budget_;
    ServingSolution plan_;
    double lower_ = 0, upper_ = milp::infinity;
    double certain_ = 0;  // lower bound without the unconfirmed answers of the solver
    milp::Status last_ = milp::Status::failed;
    std::optional<double> within_{};  // with a deadline: the longest accepted makespan
    ServingAllocation decoded_{};
};

LowerBound lower_bound(const ServingProblem& problem, std::optional<double> deadline,
                       const milp::SolveOptions& options, const milp::AnySolver& solver,
                       const Context& context) {
    const ScaledServing scaled(problem, true);
    const double makespan = closed_form_bound(scaled.problem);
    LowerBound found{deadline ? 0 : makespan, makespan * scaled.second};
    auto asked = options;
    asked.start.clear();
    const auto solve = [&](const milp::Model& model, const milp::IndexMap& used) {
        const auto solution = milp::solve(model, asked, solver, context);
        if (solution.status != milp::Status::optimal) return;
        found.value = std::max(found.value, std::min(solution.bound, solution.objective) * (1 - 1e-9));
        for (std::size_t c = 0; c < scaled.kept.size(); ++c)
            if (const int column = used(c);
                column >= 0 && solution.x[static_cast<std::size_t>(column)] > 1e-9)
                found.used.push_back(scaled.kept[c]);
    };
    if (deadline) {
        const double slowest = std::max(slowest_makespan(scaled.problem), 1e-9);
        auto model =
            serving_milp(scaled.problem, {.form = ServingForm::fixed_makespan,
                                          .makespan = std::clamp(*deadline / scaled.second, 1e-12, slowest),
                                          .minimise_cost = true});
        std::fill(model.integer.begin(), model.integer.end(), 0);
        solve(model, model.index("y"));
    } else {
        const auto model = serving_bound(scaled.problem);
        solve(model, model.index("v"));
    }
    found.value *= deadline ? scaled.dollar : scaled.second;
    return found;
}

static void validate(const ServingSearchOptions& options) {
    Problems problems;
    check_fields(problems, options);
    if (options.form == ServingForm::fixed_makespan)
        problems.add(
            "form: 'fixed_makespan'; expected 'rates', 'copies' or 'mccormick', which find the makespan");
    problems.throw_if_any();
    milp::validate(options.solve);
}

/// Runs `search` on the scaled problem.
template <class Search>
ServingSolution on_scaled(const ServingProblem& problem, const ServingSearchOptions& options,
                          Search&& search) {
    validate(problem);
    validate(options);
    const ScaledServing scaled(problem, options.prune);
    return unscaled(search(scaled), problem, scaled);
}

}  // namespace detail

GPUSCHED_EXPORT std::optional<ServingAllocation> greedy_plan(const ServingProblem& problem, double makespan) {
    validate(problem);
    if (!(makespan > 0)) throw InvalidInput(bad_value("makespan", number_text(makespan), "a number above 0"));
    return detail::GreedyServing(problem, makespan, nullptr).run();
}

GPUSCHED_EXPORT std::optional<ServingAllocation> greedy_plan(const ServingProblem& problem) {
    validate(problem);
    return detail::search_greedily(problem, nullptr);
}

GPUSCHED_EXPORT ServingSolution solve_serving_plan(const ServingProblem& problem,
                                                   const ServingSearchOptions& options,
                                                   const milp::AnySolver& solver, const Context& context) {
    return detail::on_scaled(problem, options, [&](const detail::ScaledServing& scaled) {
        return detail::ServingSearch(scaled.problem, options, solver, context).run();
    });
}

GPUSCHED_EXPORT ServingSolution cheapest_serving_plan(const ServingProblem& problem, double makespan,
                                                      const ServingSearchOptions& options,
                                                      const milp::AnySolver& solver, const Context& context) {
    if (!(makespan > 0 && std::isfinite(makespan)))
        throw InvalidInput(bad_value("makespan", number_text(makespan), "a number above 0"));
    return detail::on_scaled(problem, options, [&](const detail::ScaledServing& scaled) {
        // Every feasible problem has a plan within the slowest makespan.
        const double slowest = std::max(slowest_makespan(scaled.problem), 1e-9);
        const double within = std::clamp(makespan / scaled.second, 1e-12, slowest);
        return detail::ServingSearch(scaled.problem, options, solver, context).cheapest(within);
    });
}

}  // namespace gpusched::serving
