// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/fragmentation/fragmentation.hpp>

using namespace gpusched;
using namespace gpusched::fragmentation;

namespace {

TaskSpec task(std::int64_t cpu, std::int64_t gpus, std::int64_t share = 1000,
              std::vector<std::string> models = {}) {
    return {.name = "t", .cpu_milli = cpu, .gpu_count = gpus, .gpu_share_milli = share, .gpu_models = models};
}

std::vector<TaskSpec> repeat(std::initializer_list<std::pair<int, TaskSpec>> parts) {
    std::vector<TaskSpec> tasks;
    for (const auto& [times, t] : parts) tasks.insert(tasks.end(), static_cast<std::size_t>(times), t);
    return tasks;
}

}  // namespace

TEST_CASE("typical shapes come by falling frequency until enough tasks are covered") {
    // 20 tasks; 10 + 6 + 3 = 19 are exactly 95 %.
    const auto tasks =
        repeat({{3, task(1000, 8)}, {10, task(4000, 1)}, {1, task(1, 1)}, {6, task(4000, 1, 500)}});
    const auto workload = typical_workload(tasks);
    const Workload expected{{{4000, 1, 1000, {}, 10}, {4000, 1, 500, {}, 6}, {1000, 8, 1000, {}, 3}}};
    CHECK(workload == expected);
    CHECK(workload.total_weight() == 19);
    CHECK(typical_workload(tasks, {.coverage_percent = 96}).shapes.size() == 4);
    CHECK(typical_workload(tasks, {.coverage_percent = 50}).shapes.size() == 1);
    CHECK(typical_workload(tasks, {.coverage_percent = 51}).shapes.size() == 2);
}

TEST_CASE("tasks without GPUs belong to the workload by default") {
    const auto tasks = repeat({{3, task(1000, 0)}, {1, task(1000, 1)}});
    CHECK(typical_workload(tasks).shapes.size() == 2);
    CHECK(typical_workload(tasks).shapes[0].gpu_count == 0);
    CHECK(typical_workload(tasks, {.include_cpu_only = false}) == Workload{{{1000, 1, 1000, {}, 1}}});
}

TEST_CASE("accepted models make shapes differ, their order does not") {
    const auto tasks =
        repeat({{1, task(1, 1, 1000, {"B", "A"})}, {1, task(1, 1, 1000, {"A", "B", "A"})}, {1, task(1, 1)}});
    const Workload expected{{{1, 1, 1000, {"A", "B"}, 2}, {1, 1, 1000, {}, 1}}};
    CHECK(typical_workload(tasks, {.coverage_percent = 100}) == expected);
}

TEST_CASE("the order of the list does not matter, among equally frequent shapes either") {
    const auto tasks = repeat({{1, task(3, 1)}, {1, task(1, 2)}, {1, task(1, 1)}, {1, task(1, 1, 10)}});
    const std::vector<TaskSpec> reversed(tasks.rbegin(), tasks.rend());
    const Workload expected{
        {{1, 1, 10, {}, 1}, {1, 1, 1000, {}, 1}, {1, 2, 1000, {}, 1}, {3, 1, 1000, {}, 1}}};
    CHECK(typical_workload(tasks) == expected);
    CHECK(typical_workload(reversed) == expected);
    Trace trace;
    for (const auto& t : tasks) trace.tasks.push_back({.task = t});
    CHECK(typical_workload(trace) == expected);
}

TEST_CASE("a coverage out of range is refused, an empty list has no shapes") {
    REQUIRE_THROWS_MESSAGE(typical_workload(std::vector<TaskSpec>{}, {.coverage_percent = 0}), InvalidInput,
                           "coverage_percent: 0; expected 1 100");
    REQUIRE_THROWS_MESSAGE(typical_workload(std::vector<TaskSpec>{}, {.coverage_percent = 101}), InvalidInput,
                           "coverage_percent: 101; expected 1 100");
    CHECK(typical_workload(std::vector<TaskSpec>{}).shapes.empty());
}

TEST_CASE("a cluster's typical tasks are those of its task list") {
    auto tasks = repeat({{3, task(1000, 1, 500, {"B", "A"})},
                         {2, task(1000, 1, 500, {"A", "B", "A"})},
                         {4, task(2000, 2)},
                         {1, task(3000, 0)}});
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        tasks[i].name += std::to_string(i);
        tasks[i].memory_mib = static_cast<std::int64_t>(100 * i);
        if (i % 2 == 0) tasks[i].node_selector = {{"zone", "z"}};  // is no part of a shape
    }
    ClusterSpec spec;
    spec.nodes = {{.name = "n", .gpu_model = "A", .gpu_count = 8, .cpu_milli = 64'000, .memory_mib = 1000}};
    spec.tasks = tasks;
    const auto cluster = Cluster::build(spec);
    for (const int coverage : {50, 95, 100})
        for (const bool cpu_only : {true, false})
            CHECK(typical_workload(cluster, {.coverage_percent = coverage, .include_cpu_only = cpu_only}) ==
                  typical_workload(tasks, {.coverage_percent = coverage, .include_cpu_only = cpu_only}));
}
