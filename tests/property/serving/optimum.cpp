// SPDX-License-Identifier: Apache-2.0
// The serving plan against brute force: every choice of replicas, each with its own linear program written down here.
#include "support/instances.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/serving/serving.hpp>

using namespace gpusched;
using namespace gpusched::milp;
using namespace gpusched::serving;
using testing_support::instances;

namespace {

ServingProblem random_problem(Rng& rng) {
    ServingProblem p;
    const int types = static_cast<int>(rng.between(1, 3)), models = static_cast<int>(rng.between(1, 3));
    for (int n = 0; n < types; ++n)
        p.gpus.push_back({"g" + std::to_string(n), 0.25 * static_cast<double>(rng.between(1, 20)),
                          static_cast<int>(rng.between(1, 5))});
    for (int m = 0; m < models; ++m) {
        const auto model = "m" + std::to_string(m);
        for (int w = 0, count = static_cast<int>(rng.between(1, 3)); w < count; ++w)
            p.workloads.push_back({"w" + std::to_string(w),
                                   static_cast<double>(rng.between(rng.chance(0.1) ? 0 : 1, 90)), model});
    }
    for (int m = 0; m < models; ++m)
        for (int c = 0, count = static_cast<int>(rng.between(1, models == 1 ? 4 : 2)); c < count; ++c) {
            ServingConfiguration config{.name = "c" + std::to_string(m) + "." + std::to_string(c),
                                        .model = "m" + std::to_string(m)};
            for (int n = 0; n < types; ++n) config.gpus.push_back(rng.chance(0.3) ? 1 : 0);
            config.gpus[static_cast<std::size_t>(rng.below(static_cast<std::uint64_t>(types)))] += 1;
            for (const auto& w : p.workloads)
                config.throughput.push_back(w.model == config.model && !rng.chance(0.08)
                                                ? 0.1 * static_cast<double>(rng.between(1, 40))
                                                : 0.0);
            p.configurations.push_back(std::move(config));
        }
    p.budget = 0.5 * static_cast<double>(rng.between(16, 80));
    return p;
}

/// min T for these replicas; infinite if they cannot serve everything. Columns: T, then x(c, w) of all pairs.
double routed(const ServingProblem& p, const std::vector<int>& replicas) {
    const auto C = p.configurations.size(), W = p.workloads.size();
    LpProblem lp;
    lp.objective.assign(1 + C * W, 0.0);
    lp.objective[0] = 1;
    lp.column_lower.assign(1 + C * W, 0.0);
    lp.column_upper.assign(1 + C * W, std::numeric_limits<double>::infinity());
    lp.row_lower.assign(W + C, -std::numeric_limits<double>::infinity());
    lp.row_upper.assign(W + C, 0.0);
    for (std::size_t w = 0; w < W; ++w)
        lp.row_lower[w] = lp.row_upper[w] = p.workloads[w].requests > 0 ? 1 : 0;
    for (std::size_t c = 0; c < C; ++c) {
        lp.row_index.push_back(static_cast<int>(W + c));
        lp.value.push_back(-replicas[c]);
    }
    lp.column_start.push_back(static_cast<std::int64_t>(C));
    for (std::size_t c = 0; c < C; ++c)
        for (std::size_t w = 0; w < W; ++w) {
            const double h = p.configurations[c].throughput[w];
            if (h > 0 && replicas[c] > 0) {
                lp.row_index.push_back(static_cast<int>(w));
                lp.value.push_back(1);
                lp.row_index.push_back(static_cast<int>(W + c));
                lp.value.push_back(p.workloads[w].requests / h);
            }
            lp.column_start.push_back(static_cast<std::int64_t>(lp.value.size()));
        }
    const auto solution = milp::clp()->solve(lp);
    return solution.status == LpStatus::optimal ? solution.objective
                                                : std::numeric_limits<double>::infinity();
}

struct BruteForce {
    const ServingProblem& p;
    double best = std::numeric_limits<double>::infinity();
    std::vector<int> replicas = std::vector<int>(p.configurations.size(), 0);

    bool affordable() const {
        double money = 0;
        for (std::size_t n = 0; n < p.gpus.size(); ++n) {
            int used = 0;
            for (std::size_t c = 0; c < replicas.size(); ++c)
                used += replicas[c] * p.configurations[c].gpus[n];
            if (used > p.gpus[n].available) return false;
            money += used * p.gpus[n].price;
        }
        return money <= p.budget + 1e-9;
    }
    void run(std::size_t c = 0) {
        if (c == replicas.size()) {
            best = std::min(best, routed(p, replicas));
            return;
        }
        for (replicas[c] = 0; affordable(); ++replicas[c]) run(c + 1);
        replicas[c] = 0;
    }
};

void check(const ServingProblem& p, const ServingSolution& plan, double best, double tolerance) {
    if (std::isinf(best)) {
        CHECK(plan.status == Status::infeasible);
        CHECK_FALSE(plan.has_plan());
        return;
    }
    CAPTURE(plan.message, plan.makespan, plan.bound, plan.solver_calls);
    CHECK(plan.status == Status::optimal);
    CHECK(plan.optimal);
    CHECK(plan.makespan == Catch::Approx(best).epsilon(tolerance).margin(1e-7));
    CHECK(plan.bound <= best * (1 + 1e-7) + 1e-7);
    const auto wrong = violations(p, plan.allocation);
    CHECK(wrong == std::vector<std::string>{});
    CHECK(makespan(p, plan.allocation) == Catch::Approx(plan.makespan).epsilon(1e-7).margin(1e-7));
}

}  // namespace

TEST_CASE("serving plans of 240 random problems equal brute force, in every form") {
    if (available_solvers().empty() || milp::clp() == nullptr) {
        WARN("no solver: not checked");
        return;
    }
    Rng rng(20250222);
    int infeasible = 0, several_models = 0;
    for (int i = 0; i < instances(240); ++i) {
        const auto p = random_problem(rng);
        BruteForce brute{p};
        brute.run();
        infeasible += std::isinf(brute.best);
        several_models += p.workloads.back().model != "m0";
        CAPTURE(i, brute.best);
        check(p, solve_serving_plan(p), brute.best, 1e-6);
        check(p, solve_serving_plan(p, {.form = ServingForm::copies}), brute.best, 1e-6);
        check(p, solve_serving_plan(p, {.form = ServingForm::mccormick}), brute.best, 1e-6);
        check(p, solve_serving_plan(p, {.method = ServingMethod::binary_search}), brute.best, 1.01e-4);
        check(p,
              solve_serving_plan(
                  p, {.method = ServingMethod::binary_search, .greedy_first = false, .prune = false}),
              brute.best, 1.01e-4);
        if (std::isinf(brute.best)) continue;
        // closed form <= linear program <= optimum <= greedy
        const auto lp = solve(serving_bound(p));
        REQUIRE(lp.status == Status::optimal);
        CHECK(closed_form_bound(p) <= lp.objective * (1 + 1e-7) + 1e-7);
        CHECK(lp.objective <= brute.best * (1 + 1e-7) + 1e-7);
        const auto relaxed = solve(lp_relaxation(serving_milp(p)));
        CHECK(relaxed.objective >= lp.objective * (1 - 1e-6) - 1e-7);  // what the surrogate rows are for
        const auto rates = serving_milp(p, {.form = ServingForm::rates});
        if (brute.best > 0)  // nor does the form without them say less
            CHECK(rates.makespan_of(solve(lp_relaxation(rates)).objective) >= lp.objective * (1 - 1e-6));
        if (const auto greedy = greedy_plan(p)) {
            CHECK(makespan(p, *greedy) >= brute.best * (1 - 1e-7));
            CHECK(violations(p, *greedy) == std::vector<std::string>{});
        }
    }
    CHECK(infeasible > instances(10));
    CHECK(infeasible < instances(160));
    CHECK(several_models > instances(100));
}
