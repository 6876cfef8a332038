// Joint allocation and priority packing: what is refused, and what a limit is for.
#include "support/catch.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/milp/joint_allocation.hpp>
#include <gpusched/milp/priority_packing.hpp>

#include <chrono>
#include <thread>
#include <vector>

using namespace gpusched;
using namespace gpusched::milp;

TEST_CASE("a joint allocation has columns for what switches can hold, and jobs of different names") {
    const JointProblem p{{{"a", 100'000, 1}, {"b", 2, 2}}, {{"s", {4, 3}}, {"t", {8}}}};
    const auto m = joint_allocation(p);
    CHECK(m.index("z").extents == std::vector<int>{2, 2, 8 + 1});
    CHECK(m.columns() == (7 + 1) + (8 + 1) + 2 * (2 + 1) + 2);
    auto twice = p;
    twice.jobs[1].name = "a";
    REQUIRE_THROWS_MESSAGE(joint_allocation(twice), InvalidInput, "job 'a': appears twice");
    CHECK(joint_allocation({{{"", 1, 1}, {"", 1, 1}}, p.switches}).columns() == 4 * 2 + 2);
}

TEST_CASE("the time limit of priority packing is for all priorities together") {
    ClusterSpec spec;
    spec.nodes.push_back({.name = "n", .gpu_model = "A", .gpu_count = 4, .cpu_milli = 8000, .memory_mib = 9});
    for (int i = 0; i < 4; ++i)
        spec.tasks.push_back(
            {.name = "t" + std::to_string(i), .cpu_milli = 1, .gpu_count = 1, .priority = i});
    std::vector<double> limits;
    const AnySolver slow("slow", [&](const Model&, const SolveOptions& options, const Context&) {
        limits.push_back(options.time_limit.value_or(-1));
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        return Solution{.status = Status::time_limit};
    });
    const auto result = priority_packing(Cluster::build(spec), {.solve = {.time_limit = 0.07}}, slow);
    CHECK_FALSE(result.optimal);
    REQUIRE(limits.size() == 4);
    CHECK(limits[0] <= 0.07);
    CHECK(limits[1] <= 0.041);
    CHECK(limits[3] == 0);
}
