// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/milp/milp.hpp>

using namespace gpusched;
using namespace gpusched::milp;

namespace spot_schedule_tests {

SpotTask lp(int arrival, int pods, int gpus, std::vector<int> checkpoints) {
    return {
        .name = "lp", .arrival = arrival, .pods = pods, .gpus = gpus, .checkpoints = std::move(checkpoints)};
}
SpotTask hp(int arrival, int pods, int gpus, std::vector<int> checkpoints, int max_delay) {
    return {.name = "hp",
            .arrival = arrival,
            .pods = pods,
            .gpus = gpus,
            .hp = true,
            .checkpoints = std::move(checkpoints),
            .max_delay = max_delay};
}
const SpotProblem a{{lp(0, 1, 2, {2, 5}), hp(2, 1, 2, {2}, 0), lp(0, 1, 1, {1, 2})}, {2}, 7, 1};
const SpotProblem b{
    {lp(0, 2, 2, {1, 3}), hp(1, 1, 2, {1}, 0), hp(3, 1, 1, {2}, 0), lp(0, 1, 1, {2})}, {2, 2}, 5, 1};
const SpotProblem c{
    {lp(0, 1, 2, {2, 4}), hp(1, 2, 1, {2}, 0), hp(2, 1, 3, {2}, 1), lp(0, 1, 1, {1, 3})}, {3, 2}, 5, 1};

double optimum(SpotProblem p, double alpha, SpotMode mode) {
    p.alpha = alpha;
    const auto m = spot_schedule(p, mode);
    const auto s = solve(m);
    REQUIRE(s.status == Status::optimal);
    CHECK(spot_value(p, m.decode(s.x), mode).objective == Catch::Approx(s.objective).margin(1e-6));
    return s.objective;
}

TEST_CASE("the reference instances' optima") {
    if (available_solvers().empty()) return;
    const auto near = [](double value) { return Catch::Approx(value).margin(2e-6); };
    const auto meaning = SpotMode::meaning, literal = SpotMode::literal;
    CHECK(optimum(a, 0.2, meaning) == near(-0.142857));
    CHECK(optimum(a, 1, meaning) == near(-0.714286));
    CHECK(optimum(a, 3, meaning) == near(-2.666667));
    CHECK(optimum(b, 0.2, meaning) == near(-0.1));
    CHECK(optimum(b, 1, meaning) == near(-0.5));
    CHECK(optimum(b, 3, meaning) == near(-1.5));
    CHECK(optimum(c, 0.2, meaning) == near(-0.168));
    CHECK(optimum(c, 1, meaning) == near(-0.84));
    CHECK(optimum(c, 3, meaning) == near(-2.52));
    CHECK(optimum(a, 0.2, literal) == near(-0.411905));
    CHECK(optimum(a, 1, literal) == near(-3.726190));
    CHECK(optimum(a, 3, literal) == near(-12.011905));
    CHECK(optimum(b, 3, literal) == near(-3.788235));
}

TEST_CASE("a schedule's value is counted from its pods") {
    // The long task runs two slots, makes room, and starts again from its checkpoint.
    SpotProblem p{{lp(0, 1, 2, {2, 5}), hp(2, 1, 2, {2}, 0)}, {2}, 7, 3};
    SpotSchedule s;
    s.pods = {{{1}, {1}, {0}, {0}, {1}, {1}, {1}}, {{0}, {0}, {1}, {1}, {0}, {0}, {0}}};
    const auto v = spot_value(p, s);
    CHECK(v.runs == std::vector<int>{2, 1});
    CHECK(v.committed == std::vector<int>{5, 2});
    CHECK(v.restarts == 2);
    CHECK(v.starts == 6);
    CHECK(v.useful == 14);
    CHECK(v.objective == Catch::Approx(2.0 / 6 - 3 * 14 / 14.0));
    CHECK(spot_value(p, s, SpotMode::literal).starts == 5 * 2 + 2);
    const auto m = spot_schedule(p);
    CHECK(m.decode(m.encode(s)) == s);
    CHECK(evaluate(m, m.encode(s)).feasible(1e-9));
}

TEST_CASE("schedules against the rules are refused") {
    const SpotProblem p{{lp(1, 2, 1, {2}), hp(0, 1, 1, {2}, 0)}, {2, 1}, 4, 1};
    const auto refused = [&](SpotSchedule s, const char* part) {
        REQUIRE_THROWS_MESSAGE(spot_value(p, s), InvalidInput, part);
    };
    using S = std::vector<std::vector<int>>;
    const S none{{0, 0}, {0, 0}, {0, 0}, {0, 0}}, high{{0, 1}, {0, 1}, {0, 0}, {0, 0}};
    refused({{none}}, "entries pods 1 2");
    refused({{none, S{{0, 0}}}}, "entries pods[task] 1 4");
    refused({{none, none}}, "'hp' high priority never starts");
    refused({{none, S{{0, 0}, {0, 1}, {0, 1}, {0, 0}}}}, "'hp' starts too late");
    refused({{none, S{{0, 1}, {0, 0}, {0, 0}, {0, 0}}}}, "'hp' high priority evicted");
    refused({{S{{0, 0}, {1, 0}, {0, 0}, {0, 0}}, high}}, "'lp' part gang");
    refused({{S{{2, 0}, {0, 0}, {0, 0}, {0, 0}}, high}}, "'lp' runs before arrives");
    refused({{S{{0, 0}, {0, 0}, {2, 0}, {1, 1}}, high}}, "'lp' moves within run");
    refused({{S{{0, 0}, {2, 0}, {2, 0}, {2, 0}}, high}}, "'lp' runs after end");
    refused({{S{{0, 0}, {1, 1}, {1, 1}, {0, 0}}, high}}, "GPUs node 1: 2; at most 1");
}

TEST_CASE("malformed spot problems are reported field by field") {
    const auto refused = [](const char* part, auto change) {
        auto p = a;
        change(p);
        REQUIRE_THROWS_MESSAGE(spot_schedule(p), InvalidInput, part);
    };
    refused("horizon 0 1", [](auto& p) { p.horizon = 0; });
    refused("alpha: -1", [](auto& p) { p.alpha = -1; });
    refused("nodes[0]: -2", [](auto& p) { p.nodes[0] = -2; });
    refused("task 'lp' arrival 9 0 6", [](auto& p) { p.tasks[0].arrival = 9; });
    refused("task 'lp' pods 0", [](auto& p) { p.tasks[0].pods = 0; });
    refused("task 'lp' gpus 0", [](auto& p) { p.tasks[0].gpus = 0; });
    refused("task 'lp' checkpoints none least one", [](auto& p) { p.tasks[0].checkpoints = {}; });
    refused("task 'lp' checkpoints[1] 2 3", [](auto& p) { p.tasks[0].checkpoints = {2, 2}; });
    refused("task 'lp' max_delay with hp only", [](auto& p) { p.tasks[0].max_delay = 1; });
    refused("task 'hp' max_delay -1", [](auto& p) { p.tasks[1].max_delay = -1; });
}

}  // namespace spot_schedule_tests
