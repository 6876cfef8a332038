// SPDX-License-Identifier: Apache-2.0
// Plans by budget against a brute force over replicas at every budget, and against plans for that budget alone.
#include "support/instances.hpp"
#include "unit/serving/oracle.hpp"

using namespace gpusched;
using namespace gpusched::serving;
using namespace testing_support;

namespace {

std::vector<double> random_budgets(Rng& rng) {
    std::set<double> budgets;
    for (int i = 0, count = static_cast<int>(rng.between(2, 4)); i < count; ++i)
        budgets.insert(0.25 * static_cast<double>(rng.between(0, 28)));
    std::vector<double> result(budgets.rbegin(), budgets.rend());
    if (rng.chance(0.5)) std::reverse(result.begin(), result.end());
    return result;
}

/// Whatever is asked for.
void check_entries(const std::vector<BudgetPlan>& plans, const ServingRequest& request) {
    double least = infinity;
    for (const auto& [budget, plan] : plans) {
        CAPTURE(budget);
        CHECK(plan.left_out >= 0);
        CHECK(plan.left_out <= plan.deployments);
        if (!plan.has_plan()) {
            CHECK(std::isinf(least));
            continue;
        }
        CHECK(plan.makespan <= least);
        least = plan.makespan;
        CHECK(plan.bound <= plan.makespan);
        double cost = 0;
        std::vector<int> rented(request.gpus.size(), 0);
        for (const auto& replicas : plan.replicas) {
            cost += replicas.cost;
            for (const auto& stage : replicas.deployment.stages)
                rented[static_cast<std::size_t>(stage.gpu)] += replicas.count * stage.degree;
        }
        CHECK(rented == plan.rented);
        CHECK(cost == Catch::Approx(plan.cost));
        CHECK(plan.cost <= budget + 1e-9);
    }
}

}  // namespace

TEST_CASE("sweeps of 150 random requests equal a brute force at every budget") {
    if (milp::available_solvers().empty()) return;
    Rng rng(41);
    int feasible = 0, infeasible = 0, better = 0;
    for (int i = 0; i < instances(150); ++i) {
        auto r = random_request(rng, 1 + i % 2);
        const auto budgets = random_budgets(rng);
        auto options = exact();
        options.composition = static_cast<Composition>(i % 3);
        CAPTURE(i, enum_name(options.composition), budgets);
        const auto plans = sweep_budgets(r, budgets, options);
        REQUIRE(plans.size() == budgets.size());
        check_entries(plans, r);
        double last = infinity;
        for (const auto& [budget, plan] : plans) {
            CAPTURE(budget);
            r.budget = budget;
            double best = infinity;
            auto available = r.available;
            if (options.composition == Composition::homogeneous) {
                for (std::size_t g = 0; g < r.gpus.size(); ++g) {
                    std::vector<int> only(r.gpus.size(), 0);
                    only[g] = static_cast<int>(budget / *r.gpus[g].price + 1e-9);
                    best = std::min(best, Oracle(r, options, only).best());
                }
            } else {
                double prices = 0;
                for (std::size_t g = 0; g < r.gpus.size(); ++g)
                    prices += available[g] > 0 ? *r.gpus[g].price : 0;
                if (options.composition == Composition::uniform)
                    for (auto& count : available)
                        count = std::min(count, static_cast<int>(budget / std::max(prices, 0.1) + 1e-9));
                best = Oracle(r, options, available).best();
            }
            CHECK(plan.has_plan() == std::isfinite(best));
            CHECK(plan.status == (std::isfinite(best) ? milp::Status::optimal : milp::Status::infeasible));
            CHECK(plan_serving(r, options).has_plan() == plan.has_plan());
            (plan.has_plan() ? feasible : infeasible) += 1;
            if (!plan.has_plan()) continue;
            CHECK(plan.makespan == Catch::Approx(best).epsilon(1e-6).margin(1e-9));
            CHECK(plan.bound <= best * (1 + 1e-6) + 1e-9);
            CHECK(plan.optimal);
            better += best < 0.99 * last;
            last = best;
        }
    }
    CHECK(feasible > instances(80));
    CHECK(infeasible > instances(40));
    CHECK(better > instances(60));
}

TEST_CASE("sweeps of 120 random requests that leave deployments out are no worse than plans alone") {
    if (milp::available_solvers().empty()) return;
    Rng rng(43);
    int left_out = 0;
    for (int i = 0; i < instances(120); ++i) {
        auto r = random_request(rng, 1 + i % 2);
        r.models[0].workloads.push_back({"other", {1 + static_cast<int>(rng.below(200)), 400}, 200});
        const auto budgets = random_budgets(rng);
        auto options = exact();
        options.max_deployments = 1 + i % 3;
        options.routing = i % 4 == 3 ? Routing::round_robin : Routing::optimized;
        options.uniform_tp = i % 5 == 4;
        CAPTURE(i, budgets);
        const auto plans = sweep_budgets(r, budgets, options);
        check_entries(plans, r);
        for (const auto& [budget, plan] : plans) {
            CAPTURE(budget);
            r.budget = budget;
            const auto alone = plan_serving(r, options);
            left_out += plan.left_out > 0;
            if (!alone.has_plan()) continue;
            REQUIRE(plan.has_plan());
            if (options.routing == Routing::optimized)
                CHECK(plan.makespan <= alone.makespan * (1 + 2e-3) + 1e-9);
            // What is claimed to be the best is not beaten with nothing left out.
            if (plan.left_out > 0 || options.routing != Routing::optimized) continue;
            auto whole = options;
            whole.max_deployments = 0;
            CHECK(plan_serving(r, whole).makespan >= plan.makespan * (1 - 2e-3) - 1e-9);
        }
    }
    CHECK(left_out > instances(40));
}
