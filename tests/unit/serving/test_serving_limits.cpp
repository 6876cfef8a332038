// SPDX-License-Identifier: Apache-2.0
// Serving plans: time that is up, and names that look alike.
#include "support/catch.hpp"

#include <gpusched/serving/serving.hpp>

using namespace gpusched;
using namespace gpusched::milp;
using namespace gpusched::serving;

TEST_CASE("names with commas in them do not meet") {
    ServingProblem p{
        .gpus = {{"t1", 1, 2}},
        .workloads = {{"w1", 1, ""}, {"0,w1", 2, ""}},
        .configurations = {{"a,0", {1}, {1, 1}, ""}, {"a", {1}, {1, 1}, ""}, {"a\\", {1}, {1, 1}, ""}},
        .budget = 5};
    for (const auto form : {ServingForm::copies, ServingForm::mccormick, ServingForm::rates}) {
        const auto m = serving_milp(p, {.form = form});
        for (auto names : {m.column_names, m.row_names}) {
            std::sort(names.begin(), names.end());
            CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
        }
    }
    CHECK(serving_milp(p).column_names[1] == "y(a\\,0,0)");
}

TEST_CASE("the greedy plan heeds the time limit and cancellation") {
    ServingProblem p{.gpus = {}, .workloads = {}, .configurations = {}, .budget = 1e6};
    for (int n = 0; n < 4; ++n) p.gpus.push_back({"g" + std::to_string(n), 1.0 + 0.01 * n, 60});
    for (int w = 0; w < 5; ++w) p.workloads.push_back({"w" + std::to_string(w), 1000.0 + w, ""});
    for (int c = 0; c < 12; ++c) {
        ServingConfiguration configuration{.name = "c" + std::to_string(c), .gpus = {}, .throughput = {}};
        for (int n = 0; n < 4; ++n) configuration.gpus.push_back(n == c % 4 ? 1 + c / 4 : 0);
        for (int w = 0; w < 5; ++w) configuration.throughput.push_back(1 + (c * 7 + w * 13) % 29);
        p.configurations.push_back(std::move(configuration));
    }
    const AnySolver nobody("nobody", [&](const Model&, const SolveOptions&, const Context&) {
        return Solution{.status = Status::time_limit, .bound = -infinity};
    });
    const auto best_plan = greedy_plan(p);
    REQUIRE(best_plan);
    std::stop_source stop;
    stop.request_stop();
    for (const auto method : {ServingMethod::milp, ServingMethod::binary_search}) {
        const ServingSearchOptions options{.method = method, .solve = {.time_limit = 10.0}};
        const auto whole = solve_serving_plan(p, options, nobody);
        CHECK(whole.makespan == Catch::Approx(makespan(p, *best_plan)).epsilon(1e-3));
        const auto cut = solve_serving_plan(p, options, nobody, {.stop = stop.get_token()});
        CHECK(cut.has_plan());  // the first one
        CHECK_FALSE(cut.optimal);
        CHECK(cut.makespan > 2 * whole.makespan);
        const ServingSearchOptions none{.method = method, .solve = {.time_limit = 0.0}};
        CHECK(solve_serving_plan(p, none, nobody).makespan == cut.makespan);
    }
}
