// SPDX-License-Identifier: Apache-2.0
// The rental problem as a mixed-integer program.

#include "serving/rental_instance.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/rental.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving {

GPUSCHED_EXPORT void validate(const RentalProblem& problem) {
    ServingProblem rest{{}, problem.workloads, problem.configurations, 0};
    Problems problems;
    for (const auto& offer : problem.offers) {
        check_fields(problems, offer, "offer " + gpusched::quoted(offer.name));
        rest.gpus.push_back({offer.name, offer.price, offer.available});
    }
    collect(problems, [&] { validate(rest); });
    if (!(problem.budget >= 0)) problems.add(bad_value("budget", number_text(problem.budget), "at least 0"));
    const auto one_each = [&](const char* field, const std::vector<int>& list) {
        if (!list.empty())
            check_size(problems, field, list.size(), problem.configurations.size(),
                       ", one per configuration");
    };
    one_each("running", problem.running);
    for (const auto count : problem.running) check_at_least(problems, "running", count, 0);
    one_each("alike", problem.alike);
    for (std::size_t c = 0; c < problem.alike.size(); ++c) {
        const int first = problem.alike[c];
        if (first < 0 || static_cast<std::size_t>(first) > c ||
            problem.alike[static_cast<std::size_t>(first)] != first)
            problems.add(bad_value("alike", std::to_string(first),
                                   "the index of a configuration that is the first of those alike"));
    }
    if (problem.max_starts) check_at_least(problems, "max_starts", *problem.max_starts, 0);
    problems.throw_if_any();
}

GPUSCHED_EXPORT std::int64_t count_starts(const RentalProblem& problem, const std::vector<int>& replicas) {
    std::vector<std::int64_t> beyond(replicas.size(), 0);
    for (std::size_t c = 0; c < replicas.size(); ++c) {
        const auto first = problem.alike.empty() ? c : static_cast<std::size_t>(problem.alike[c]);
        beyond[first] += replicas[c] - (problem.running.empty() ? 0 : problem.running[c]);
    }
    std::int64_t count = 0;
    for (const auto more : beyond) count += std::max<std::int64_t>(0, more);
    return count;
}

namespace detail {

/// The columns of the rental program.
struct RentalColumns {
    milp::IndexMap x, y, usual, spot, start;
    int multiple = -1;
};

static milp::Model build_rental(const RentalProblem& p, RentalGoal goal, RentalColumns& at) {
    milp::ModelBuilder b("rental");
    const auto C = p.configurations.size(), W = p.workloads.size(), N = p.offers.size();
    const auto named = [](const char* what, const auto& owner) {
        return std::string(what) + "(" + owner.name + ")";
    };
    // Solvers ignore coefficients within their tolerance, mostly 1e-6, so every kind takes at least 1e-5 of a
    // replica. Kinds that take more than 1e9 replicas are not served.
    const double least = goal == RentalGoal::rate ? 0 : 1e-5;
    const auto busy = [&](std::size_t c, std::size_t w) {
        const double rate = p.configurations[c].throughput[w], requests = p.workloads[w].requests;
        const double replicas = rate > 0 && requests > 0 ? requests / rate : 0.0;
        return replicas > 1e9 ? 0.0 : replicas > 0 ? std::max(replicas, least) : 0.0;
    };
    std::vector<int> most;                // replicas of each configuration
    std::vector<double> highest(W, 0.0);  // multiple of each workload
    for (std::size_t c = 0; c < C; ++c) {
        std::int64_t count = 1'000'000'000;
        for (std::size_t n = 0; n < N; ++n)
            if (const int needed = p.configurations[c].gpus[n]; needed > 0)
                count = std::min(
                    count, std::int64_t{p.offers[n].gpus} *
                               (std::int64_t{p.offers[n].available} + p.offers[n].spot_available) / needed);
        double enough = 1;
        for (std::size_t w = 0; w < W; ++w) {
            if (busy(c, w) > 0) highest[w] += static_cast<double>(count) / busy(c, w);
            enough += std::ceil(busy(c, w));
        }
        if (goal != RentalGoal::rate) count = static_cast<std::int64_t>(std::min<double>(count, enough));
        most.push_back(static_cast<int>(count));
    }
    double limit = 1;  // upper limit of the multiple
    if (goal == RentalGoal::rate) {
        limit = 1e9;
        for (std::size_t w = 0; w < W; ++w)
            if (p.workloads[w].requests > 0) limit = std::min(limit, highest[w]);
    }
    at = {milp::IndexMap("x", C, W), milp::IndexMap("y", C), milp::IndexMap("usual", N),
          milp::IndexMap("spot", N), milp::IndexMap("start", C)};
    for (std::size_t c = 0; c < C; ++c)
        for (std::size_t w = 0; w < W; ++w)
            if (busy(c, w) > 0)
                at.x(c, w) = b.column("x(" + p.configurations[c].name + "," + p.workloads[w].model + "," +
                                          p.workloads[w].name + ")",
                                      0, limit);
    for (std::size_t c = 0; c < C; ++c)
        at.y(c) = b.column(named("y", p.configurations[c]), 0, most[c], 0, true);
    for (std::size_t n = 0; n < N; ++n) {
        const auto& offer = p.offers[n];
        const auto weight = [&](double price) {
            return goal == RentalGoal::cost ? price : goal == RentalGoal::gpus ? offer.gpus : 0.0;
        };
        at.usual(n) = b.column(named("usual", offer), 0, offer.available, weight(offer.price), true);
        at.spot(n) = b.column(named("spot", offer), 0, offer.spot_available, weight(offer.spot_price), true);
    }
    at.multiple = b.column("r", goal == RentalGoal::rate ? 0 : 1, limit, goal == RentalGoal::rate ? 1 : 0);
    std::vector<milp::Entry> row;
    for (std::size_t w = 0; w < W; ++w) {
        if (p.workloads[w].requests <= 0) continue;
        row.clear();
        for (std::size_t c = 0; c < C; ++c)
            if (at.x(c, w) >= 0) row.push_back({at.x(c, w), 1});
        row.push_back({at.multiple, -1});
        b.equal("coverage", "coverage(" + p.workloads[w].model + "," + p.workloads[w].name + ")", row, 0);
    }
    for (std::size_t c = 0; c < C; ++c) {
        row.clear();
        for (std::size_t w = 0; w < W; ++w)
            if (at.x(c, w) >= 0) row.push_back({at.x(c, w), busy(c, w)});
        if (row.empty()) {
            b.fix(at.y(c), 0, 0);
            continue;
        }
        row.push_back({at.y(c), -1});
        b.at_most("time", named("time", p.configurations[c]), row, 0);
    }
    for (std::size_t n = 0; n < N; ++n) {
        const double gpus = p.offers[n].gpus;
        row.clear();
        for (std::size_t c = 0; c < C; ++c)
            row.push_back({at.y(c), static_cast<double>(p.configurations[c].gpus[n])});
        row.push_back({at.usual(n), -gpus});
        row.push_back({at.spot(n), -gpus});
        b.at_most("pieces", named("pieces", p.offers[n]), row, 0);
    }
    if (std::isfinite(p.budget)) {
        row.clear();
        for (std::size_t n = 0; n < N; ++n) {
            row.push_back({at.usual(n), p.offers[n].price});
            row.push_back({at.spot(n), p.offers[n].spot_price});
        }
        b.at_most("budget", "budget", row, p.budget);
    }
    for (std::size_t n = 0; n < N; ++n) {
        const auto& offer = p.offers[n];
        if (offer.minimum <= 1) continue;
        const int some = b.binary(named("some", offer));
        row = {{at.usual(n), 1}, {at.spot(n), 1}, {some, -(1.0 * offer.available + offer.spot_available)}};
        b.at_most("minimum", named("any", offer), row, 0);
        row = {{at.usual(n), 1}, {at.spot(n), 1}, {some, -1.0 * offer.minimum}};
        b.at_least("minimum", named("minimum", offer), row, 0);
    }
    if (goal == RentalGoal::starts || p.max_starts) {
        const auto first = [&](std::size_t c) {
            return p.alike.empty() ? c : static_cast<std::size_t>(p.alike[c]);
        };
        for (std::size_t c = 0; c < C; ++c) {
            if (first(c) != c) continue;
            at.start(c) = b.column(named("start", p.configurations[c]), 0, milp::infinity,
                                   goal == RentalGoal::starts ? 1 : 0);
            row.assign({{at.start(c), -1}});
            double runs = 0;
            for (std::size_t other = c; other < C; ++other) {
                if (first(other) != c) continue;
                row.push_back({at.y(other), 1});
                runs += p.running.empty() ? 0 : p.running[other];
            }
            b.at_most("starts", named("starts", p.configurations[c]), row, runs);
        }
    }
    if (p.max_starts) {
        row.clear();
        for (std::size_t c = 0; c < C; ++c)
            if (at.start(c) >= 0) row.push_back({at.start(c), 1});
        b.at_most("starts", "starts", row, *p.max_starts);
    }
    b.set_sense(goal == RentalGoal::rate ? milp::Sense::maximise : milp::Sense::minimise);
    for (const auto* index : {&at.x, &at.y, &at.usual, &at.spot, &at.start}) b.add_index(*index);
    return b.finish();
}

double rental_bound(const RentalProblem& problem, RentalGoal goal, bool whole,
                    const milp::SolveOptions& options, const milp::AnySolver& solver,
                    const Context& context) {
    if (whole) {
        const auto found = solve_rental(problem, goal, options, solver, context);
        if (found.has_plan()) return found.bound;
    }
    RentalColumns at;
    auto model = build_rental(problem, goal, at);
    std::fill(model.integer.begin(), model.integer.end(), 0);
    const auto found = milp::solve(model, options, solver, context);
    if (found.status == milp::Status::optimal)
        return goal == RentalGoal::rate ? std::max(found.bound, found.objective)
                                        : std::min(found.bound, found.objective);
    return goal == RentalGoal::rate ? milp::infinity : 0;
}

}  // namespace detail

GPUSCHED_EXPORT RentalSolution solve_rental(const RentalProblem& problem, RentalGoal goal,
                                            const milp::SolveOptions& options, const milp::AnySolver& solver,
                                            const Context& context) {
    validate(problem);
    detail::RentalColumns at;
    const auto model = detail::build_rental(problem, goal, at);
    const Budget budget(context, options.time_limit);
    auto found = milp::solve(model, options, solver, context);
    // CBC (2.10.8) with preprocessing has called expensive plans optimal and feasible problems infeasible. So
    // of its two answers the better plan counts, and the weaker bound. Other solvers are asked twice only for
    // "infeasible".
    if (options.presolve && (found.status == milp::Status::infeasible ||
                             (found.status == milp::Status::optimal && found.solver == "cbc"))) {
        auto plain = options;
        plain.presolve = false;
        plain.time_limit = budget.remaining_s();
        auto again = milp::solve(model, plain, solver, context);
        const double sign = goal == RentalGoal::rate ? -1 : 1;
        const double bound = sign * std::min(sign * found.bound, sign * again.bound);
        if (again.has_solution() &&
            (!found.has_solution() || sign * again.objective < sign * found.objective))
            found = std::move(again);
        else if (!found.has_solution() && again.status != milp::Status::infeasible)
            found.status = again.status;  // infeasible in one run, no answer in the other
        if (found.has_solution()) found.bound = bound;
    }
    RentalSolution result;
    result.status = found.status;
    const double no_bound = goal == RentalGoal::rate ? std::numeric_limits<double>::infinity() : 0;
    result.bound = std::isfinite(found.bound) ? found.bound : no_bound;
    result.solver = found.solver;
    result.message = found.message;
    if (!found.has_solution()) return result;
    const auto value = [&](int column) { return found.x[static_cast<std::size_t>(column)]; };
    const auto whole = [&](int column) { return static_cast<int>(std::lround(value(column))); };
    const auto C = problem.configurations.size();
    const auto W = problem.workloads.size();
    result.multiple = value(at.multiple);
    if (goal == RentalGoal::rate && result.multiple <= 0) {
        result.status = milp::Status::infeasible;
        return result;
    }
    for (std::size_t n = 0; n < problem.offers.size(); ++n) {
        const auto& offer = problem.offers[n];
        result.usual.push_back(whole(at.usual(n)));
        result.spot.push_back(whole(at.spot(n)));
        result.cost += offer.price * result.usual.back() + offer.spot_price * result.spot.back();
    }
    std::vector<double> served(W, 0.0);
    for (std::size_t c = 0; c < C; ++c) {
        result.replicas.push_back(whole(at.y(c)));
        result.share.emplace_back(W, 0.0);
        for (std::size_t w = 0; w < W; ++w) {
            if (at.x(c, w) < 0 || result.replicas[c] == 0) continue;
            result.share[c][w] = std::max(0.0, value(at.x(c, w))) / result.multiple;
            if (result.share[c][w] < 1e-9) result.share[c][w] = 0;
            served[w] += result.share[c][w];
        }
    }
    result.starts = static_cast<int>(count_starts(problem, result.replicas));
    for (std::size_t c = 0; c < C; ++c)
        for (std::size_t w = 0; w < W; ++w)
            if (served[w] > 0) result.share[c][w] /= served[w];
    // The solver's multiple can exceed the capacity of these replicas within its tolerance.
    if (goal == RentalGoal::rate)
        for (std::size_t c = 0; c < C; ++c) {
            double load = 0;
            for (std::size_t w = 0; w < W; ++w)
                if (result.share[c][w] > 0)
                    load += result.share[c][w] * problem.workloads[w].requests /
                            problem.configurations[c].throughput[w];
            if (load > 0) result.multiple = std::min(result.multiple, result.replicas[c] / load);
        }
    double reached = goal == RentalGoal::cost ? result.cost : goal == RentalGoal::rate ? result.multiple : 0;
    if (goal == RentalGoal::starts) reached = result.starts;
    if (goal == RentalGoal::gpus)
        for (std::size_t n = 0; n < problem.offers.size(); ++n)
            reached += 1.0 * problem.offers[n].gpus * (result.usual[n] + result.spot[n]);
    const double gap = std::max(options.mip_gap, 1e-6) * std::max(1e-9, std::abs(reached));
    result.optimal = std::abs(reached - found.bound) <= gap + 1e-9;
    if (!result.optimal && result.status == milp::Status::optimal) result.status = milp::Status::feasible;
    if (auto wrong = violations(problem, result); !wrong.empty()) {
        result = RentalSolution{};
        result.bound = no_bound;
        result.solver = found.solver;
        result.message = "the solver returned an invalid plan: " + wrong.front();
    }
    return result;
}

GPUSCHED_EXPORT std::vector<std::string> violations(const RentalProblem& problem,
                                                    const RentalSolution& solution, double tolerance) {
    std::vector<std::string> found;
    const auto wrong = [&](bool right, std::string text) {
        if (!right) found.push_back(std::move(text));
    };
    if (problem.max_starts) {
        const auto started = count_starts(problem, solution.replicas);
        wrong(started <= *problem.max_starts,
              bad_value("starts", std::to_string(started), "at most " + std::to_string(*problem.max_starts)));
    }
    double spent = 0;
    for (std::size_t n = 0; n < problem.offers.size(); ++n) {
        const auto& offer = problem.offers[n];
        const auto owner = "offer " + gpusched::quoted(offer.name);
        const int usual = solution.usual[n], spot = solution.spot[n];
        spent += usual * offer.price + spot * offer.spot_price;
        wrong(usual <= offer.available && usual >= 0, owner + ": more rented than there is");
        wrong(spot <= offer.spot_available && spot >= 0,
              owner + ": more rented at the spot price than there is");
        wrong(usual + spot == 0 || usual + spot >= offer.minimum, owner + ": fewer rented than the minimum");
        std::int64_t used = 0;
        for (std::size_t c = 0; c < problem.configurations.size(); ++c)
            used += std::int64_t{solution.replicas[c]} * problem.configurations[c].gpus[n];
        wrong(used <= (std::int64_t{usual} + spot) * offer.gpus,
              owner + ": replicas use more than is rented");
    }
    wrong(spent <= problem.budget * (1 + tolerance) + tolerance,
          bad_value("cost", number_text(spent), "at most " + number_text(problem.budget)));
    for (std::size_t w = 0; w < problem.workloads.size(); ++w) {
        if (problem.workloads[w].requests <= 0) continue;
        double served = 0;
        for (const auto& share : solution.share) served += share[w];
        wrong(std::abs(served - 1) <= tolerance,
              bad_value("served share of " + gpusched::quoted(problem.workloads[w].name), number_text(served),
                        "1"));
    }
    for (std::size_t c = 0; c < problem.configurations.size(); ++c) {
        const auto& configuration = problem.configurations[c];
        double load = 0;
        for (std::size_t w = 0; w < problem.workloads.size(); ++w) {
            const double rate = solution.share[c][w] * problem.workloads[w].requests * solution.multiple;
            if (rate > 0)
                load += configuration.throughput[w] > 0 ? rate / configuration.throughput[w]
                                                        : std::numeric_limits<double>::infinity();
        }
        wrong(load <= solution.replicas[c] * (1 + 1e-5) + tolerance,
              "configuration " + gpusched::quoted(configuration.name) + ": more is sent than it serves");
    }
    return found;
}

}  // namespace gpusched::serving
