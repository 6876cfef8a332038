// SPDX-License-Identifier: Apache-2.0
#include "oracle.hpp"

using namespace gpusched;
using namespace gpusched::serving;
using namespace testing_support;

TEST_CASE("replanning starts as few replicas as a brute force", "[serving]") {
    if (milp::available_solvers().empty()) return;
    Rng rng(9);
    const auto solver = milp::find_solver();
    int smaller = 0, compared = 0, longer = 0;
    for (int i = 0; i < 60; ++i) {
        auto r = random_request(rng, 1);
        ReplanOptions options{.planner = exact(), .slack = 0.2};
        const auto before = plan_serving(r, options.planner, solver);
        if (!before.has_plan()) continue;
        // Requests become longer, a card goes, or there is more money.
        r.models[0].workloads[0].shape.output += 400;
        if (i % 3 == 1) r.available[0] = std::max(0, r.available[0] - 1);
        if (i % 3 == 2) r.budget += 1;
        if (i % 4 == 3) options.max_starts = 1;
        const Oracle oracle(r, options.planner, r.available);
        const auto starts = [&](const std::vector<int>& counts) {
            int sum = 0;
            for (std::size_t c = 0; c < counts.size(); ++c) {
                int runs = 0;
                for (const auto& p : before.replicas)
                    if (p.deployment == oracle.options[c].deployment) runs += p.count;
                sum += std::max(0, counts[c] - runs);
            }
            return sum;
        };
        const int most = options.max_starts.value_or(1000);
        double free = infinity, kept = infinity;
        oracle.each([&](const auto& counts, double makespan, double) {
            if (starts(counts) <= most) free = std::min(free, makespan);
            if (starts(counts) == 0) kept = std::min(kept, makespan);
        });
        int fewest = 1000;
        oracle.each([&](const auto& counts, double makespan, double) {
            if (makespan <= 1.2 * free * (1 + 1e-9)) fewest = std::min(fewest, starts(counts));
        });
        CAPTURE(i);
        const auto after = replan(r, before.replicas, options, solver);
        REQUIRE(after.plan.has_plan() == std::isfinite(free));
        if (!std::isfinite(free) || r.models[0].workloads[0].requests == 0) continue;
        CHECK(after.makespan_free == Catch::Approx(free).epsilon(1e-6));
        CHECK((std::isfinite(kept) ? after.makespan_kept == Catch::Approx(kept).epsilon(1e-6)
                                   : std::isnan(after.makespan_kept)));
        CHECK(after.starts == fewest);
        CHECK(after.plan.makespan <= 1.2 * free * (1 + 1e-6));
        // What is proved is about the best plan, not about the one that starts fewest.
        CHECK(after.plan.bound <= free * (1 + 1e-6));
        CHECK(after.plan.bound >= free * (1 - 2e-3));
        CHECK(after.plan.optimal == (after.plan.makespan <= free * (1 + 1e-3)));
        CHECK(after.plan.message == (after.plan.optimal ? "" : "fewest starts within slack"));
        longer += !after.plan.optimal;
        int now = 0, then = 0;
        for (const auto& p : after.plan.replicas) now += p.count;
        for (const auto& p : before.replicas) then += p.count;
        CHECK(now - after.starts == then - after.stops);
        ++compared;
        smaller += after.starts > 0;
    }
    CHECK(compared > 15);
    CHECK(smaller > 3);
    CHECK(longer > 3);
}

TEST_CASE("more GPUs than an int counts are no trouble for replanning", "[serving]") {
    if (milp::available_solvers().empty()) return;
    Rng rng(9);
    auto r = random_request(rng, 1);
    const auto before = plan_serving(r);
    for (auto& count : r.available) count = std::numeric_limits<int>::max();
    r.budget = 3;
    const auto after = replan(r, before.replicas, {.planner = exact()}, milp::find_solver());
    CHECK(after.plan.status == milp::Status::optimal);
    CHECK(after.starts >= 0);
}

TEST_CASE("types and models may be called as the planner calls its own", "[serving]") {
    if (milp::available_solvers().empty()) return;
    Rng rng(9);
    auto r = random_request(rng, 1);
    r.available = {3, 3};
    r.budget = 5;
    r.models[0].workloads[0].requests = 100;
    r.models[0].model.name = "A";
    const auto options = exact();
    const auto solver = milp::find_solver();
    const auto plain = plan_serving(r, options, solver);
    REQUIRE(plain.has_plan());
    const auto again = replan(r, plain.replicas, {.planner = options}, solver);
    const auto names = {std::string("may be started"), "runs: A: " + plain.replicas[0].deployment.name,
                        std::string("runs: A: ") + r.gpus[1].name + " 1x1"};
    for (const auto& name : names) {
        CAPTURE(name);
        auto odd = r;
        odd.gpus[0].name = name;
        const auto changed = replan(odd, plain.replicas, {.planner = options}, solver);
        CHECK(changed.plan.makespan == Catch::Approx(again.plan.makespan));
        CHECK(changed.starts == again.starts);
    }
    // "A" on a "B: G" and "A: B" on a "G" read alike.
    r.models.push_back(r.models[0]);
    r.models[1].model.name = "C";
    const auto two = plan_serving(r, options, solver);
    REQUIRE(two.has_plan());
    r.models[1].model.name = "A: B";
    r.gpus[0].name = "B: G";
    r.gpus[1].name = "G";
    CHECK(plan_serving(r, options, solver).makespan == Catch::Approx(two.makespan));
    CHECK(replan(r, two.replicas, {.planner = options}, solver).plan.has_plan());
}
