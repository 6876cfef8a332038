// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/serving/serving.hpp>

using namespace gpusched;
using namespace gpusched::serving;

namespace sweep_budgets_tests {

ServingRequest request() {
    return {paper_gpus_dense(),
            {2, 4, 4, 2, 3, 6},
            -1,  // not used
            {{llama3_8b(), {{"long", {2455, 18}, 700}, {"chat", {496, 510}, 300}}}},
            {}};
}

std::vector<std::string> problems_of(const ServingRequest& r, const std::vector<double>& budgets,
                                     const PlannerOptions& options) {
    return testing_support::problems_in<InvalidInput>([&] {
        (void)sweep_budgets(
            r, budgets, options,
            milp::AnySolver("none", [](const auto&, const auto&, const auto&) { return milp::Solution{}; }));
    });
}

TEST_CASE("a sweep has the plan of each budget, smallest first", "[serving]") {
    if (milp::available_solvers().empty()) return;
    for (const auto composition : {Composition::optimized, Composition::homogeneous, Composition::uniform}) {
        PlannerOptions options{.composition = composition};
        options.deployments.max_types = 1;
        const auto plans = sweep_budgets(request(), {16, 0.1, 8}, options);
        REQUIRE(plans.size() == 3);
        CHECK((plans[0].budget == 0.1 && plans[1].budget == 8 && plans[2].budget == 16));
        CHECK(plans[0].plan.status == milp::Status::infeasible);
        for (const auto& [budget, plan] : plans) {
            CAPTURE(enum_name(composition), budget);
            auto alone = request();
            alone.budget = budget;
            const auto other = plan_serving(alone, options);
            CHECK(plan.has_plan() == other.has_plan());
            if (!plan.has_plan()) continue;
            CHECK(plan.makespan == Catch::Approx(other.makespan).epsilon(2e-3));
            CHECK(plan.cost <= budget + 1e-9);
            CHECK(plan.bound <= plan.makespan);
            CHECK(plan.optimal);
            CHECK(plan.cost_per_request == Catch::Approx(plan.cost * plan.makespan / 3600 / 1000));
        }
        CHECK(plans[2].plan.makespan < plans[1].plan.makespan);
    }
}

TEST_CASE("more money is never worse with any solver", "[serving]") {
    if (milp::available_solvers().empty()) return;
    const auto real = milp::find_solver();
    // Solves the problems of the first budget, and gives up on all others.
    std::size_t calls = 0, first = 0;
    const milp::AnySolver counting("counting",
                                   [&](const milp::Model& m, const milp::SolveOptions& o, const Context& c) {
                                       ++calls;
                                       return real(m, o, c);
                                   });
    const milp::AnySolver limited(
        "limited", [&](const milp::Model& m, const milp::SolveOptions& o, const Context& c) {
            return ++calls <= first ? real(m, o, c) : milp::Solution{.status = milp::Status::time_limit};
        });
    auto asked = request();
    asked.models[0].model = llama3_70b();
    asked.available = {8, 12, 12, 6, 8, 16};
    int kept = 0;
    for (const auto routing : {Routing::optimized, Routing::round_robin})
        for (const double budget : {5, 8, 11, 14, 17, 20}) {
            CAPTURE(enum_name(routing), budget);
            PlannerOptions options{.routing = routing, .max_deployments = 8};
            options.deployments.max_types = 1;
            options.deployments.max_gpus = 8;
            options.search.solve.mip_gap = 1e-3;
            asked.budget = budget;
            calls = 0;
            const auto exact = plan_serving(asked, options, counting);
            first = calls;
            calls = 0;
            const auto plans = sweep_budgets(asked, {budget + 1, budget + 0.001, budget}, options, limited);
            REQUIRE(plans.size() == 3);
            CHECK(plans[0].plan.makespan == exact.makespan);
            for (std::size_t i = 1; i < plans.size(); ++i) {
                const auto& plan = plans[i].plan;
                CHECK(plan.makespan <= plans[i - 1].plan.makespan);
                CHECK(plan.bound <= plan.makespan);
                CHECK_FALSE(plan.optimal);
                CHECK(plan.status == milp::Status::time_limit);
                CHECK(plan.requests_per_s == Catch::Approx(1000 / plan.makespan));
                double cost = 0;
                for (const auto& replicas : plan.replicas) cost += replicas.cost;
                CHECK(cost == Catch::Approx(plan.cost));
                double rent = 0;
                for (const auto& rented : plan.rentals) rent += rented.cost;
                CHECK(rent == Catch::Approx(plan.cost));
                CHECK(plan.cost <= plans[i].budget + 1e-9);
                asked.budget = plans[i].budget;
                first = 0;
                kept += plan_serving(asked, options, limited).makespan > plan.makespan * 1.001;
            }
        }
    CHECK(kept > 3);
}

TEST_CASE("all mistakes in a sweep are reported at once", "[serving]") {
    auto broken = request();
    broken.available[0] = -2;
    const auto found = problems_of(broken, {3, -1, 3, std::numeric_limits<double>::quiet_NaN()},
                                   {.deadline = 7, .max_deployments = -1});
    const auto told = [&](const std::string& part) {
        return std::count_if(found.begin(), found.end(), [&](const std::string& problem) {
            return testing_support::mentions(problem, part);
        });
    };
    CHECK(told("available -2") == 1);
    CHECK(told("max_deployments -1") == 1);
    CHECK(told("deadline not in sweep") == 1);
    CHECK(told("budgets[1] -1 finite 0") == 1);
    CHECK(told("budgets[3] nan") == 1);
    CHECK(told("budgets[2] 3 twice") == 1);
    CHECK(found.size() == 6);
    CHECK_THAT(problems_of(request(), {}, {}), MentionsEach({"budgets none least one"}));
}

}  // namespace sweep_budgets_tests
