// SPDX-License-Identifier: Apache-2.0
// The plan checker on a valid plan, and on what looks wrong but is not.
#include "plan_scenario.hpp"

using namespace gpusched;
using namespace testing_support;

TEST_CASE("a valid plan is accepted") {
    const auto s = scenario();
    const auto report = verify::plan(s.snapshot, s.plan);
    INFO((report.ok ? "" : report.violations.front()));
    REQUIRE(report.ok);
    REQUIRE(report.violations.empty());
    REQUIRE(report.vacated_nodes == std::vector<std::string>{"n0"});
    REQUIRE(report.vacated_gpus == 4);
}

TEST_CASE("an empty plan and an empty snapshot are fine") {
    REQUIRE(verify::plan({}, {}).ok);
    REQUIRE(verify::plan(scenario().snapshot, {}).ok);
    REQUIRE(verify::plan(scenario().snapshot, {}).vacated_nodes.empty());
}

TEST_CASE("valid plans that look wrong") {
    auto s = scenario();
    const auto accepted = [&] {
        const auto report = verify::plan(s.snapshot, s.plan);
        INFO((report.ok ? "" : report.violations.front()));
        CHECK(report.ok);
    };
    SECTION("LP tasks overlap a Standby claim") {
        s.task("a").priority_class = PriorityClass::lp;
        s.node("n5").cpu_milli = 3000;  // h, daemon and a consume; the claim does not
        s.task("h").cpu_milli = s.task("daemon").cpu_milli = 1000;
        s.plan.moves[2] = {"a", "n1", "n5", {0, 1}, 1};
        accepted();
    }
    SECTION("tolerated taints, and PreferNoSchedule") {
        s.node("n1").taints = {
            {"soft", "", "PreferNoSchedule"}, {"k", "v", "NoSchedule"}, {"e", "w", "NoExecute"}};
        s.task("a").tolerations = {{"k", "Equal", "v", "NoSchedule"}, {"e", "Exists", "", ""}};
        s.task("b").tolerations = {{"", "Exists", "", ""}};
        accepted();
    }
    SECTION("a task's own old copy does not count against its group") {
        s.task("a").anti_affinity = {{"g", 0, 1}, {"g", 1, 1}};
        s.task("b").affinity = {{"near", node_level}};
        accepted();
    }
    SECTION("moves of a gang within its domain") {
        s.task("a").network_affinity = NetworkAffinity{1, NetworkMode::required};
        accepted();
    }
    SECTION("a preferred network level binds no task") {
        s.task("a").network_affinity = NetworkAffinity{1, NetworkMode::preferred};
        s.task("h").job = "job";
        accepted();
    }
    SECTION("constraints that the snapshot violates from the start") {
        s.node("n0").taints = {{"k", "v", "NoExecute"}};
        s.node("n0").schedulable = false;
        s.node("n0").failed_gpus = {0};
        s.task("d").anti_affinity = s.task("a").anti_affinity = {{"elsewhere", 0, 5}};
        s.task("c").node_selector = {{"no such label", ""}};
        const auto report = verify::plan(s.snapshot, s.plan);
        CHECK(report.ok);
        CHECK(report.vacated_gpus == 3);
    }
    SECTION("GPU memory on a node that does not model it") {
        s.node("n2").gpu_memory_mib.reset();
        s.task("a").gpu_memory_mib = 16384;
        accepted();
    }
    SECTION("best-effort locality, and guaranteed locality of one GPU") {
        s.task("a").hardware_affinity = {{HardwareLevel::numa, HardwareQos::best_effort}};
        s.task("b").hardware_affinity = {{HardwareLevel::numa, HardwareQos::guaranteed}};
        s.plan.moves[2].gpus = {1, 2};
        s.node("n1").hardware.reset();
        accepted();
    }
    SECTION("two tasks that trade places") {
        // Each holds its old place while it takes the new one, so neither node is empty.
        s.plan = {};
        s.plan.waves = 1;
        s.plan.moves = {{"c", "n1", "n2", {0}, 0}, {"d", "n2", "n1", {}, 0}};
        accepted();
    }
    SECTION("a move to a node that the evictions emptied") {
        s.plan.moves[2] = {"a", "n1", "n3", {2, 3}, 1};
        s.plan.placements[0].node = "n4";
        accepted();
    }
    SECTION("a node that runs empty in one wave and receives in a later one") {
        s.plan.waves = 3;
        s.plan.moves = {{"c", "n1", "n2", {3}, 0}, {"a", "n0", "n1", {2, 3}, 1}, {"b", "n0", "n1", {1}, 2}};
        accepted();
    }
    SECTION("moves in any order within the file") {
        std::swap(s.plan.moves[0], s.plan.moves[2]);
        accepted();
    }
    SECTION("a placement on an empty node, and on one that moves emptied") {
        s.plan.placements[0].node = "n0";
        s.plan.vacated_nodes = {"n3"};
        accepted();
    }
    SECTION("an evicted task that starts elsewhere") {
        s.plan.placements.push_back({"spot", "n4", {0, 1, 2, 3}});
        accepted();
    }
    SECTION("a node without GPUs") {
        s.node("n4").gpu_count = 0;
        accepted();
    }
    SECTION("statistics without a bound on the value, within it, and a bound without the statistic") {
        s.plan.evictions.clear();
        s.plan.placements.clear();
        s.plan.stats["value_milli"] = 5;
        accepted();
        s.plan.bound.value_at_most = 5;
        accepted();
        s.plan.stats.clear();
        accepted();
    }
    SECTION("a bound does not apply to plans that evict") {
        s.plan.bound = {6, 0, 0, "counting"};
        accepted();
    }
}

TEST_CASE("violations beyond the limit are counted") {
    auto s = scenario();
    for (int i = 0; i < 50; ++i) s.plan.evictions.push_back("nobody" + std::to_string(i));
    const auto report = verify::plan(s.snapshot, s.plan, {.max_violations = 3});
    REQUIRE_FALSE(report.ok);
    REQUIRE(report.violations.size() == 3);
    REQUIRE_THAT(report.violations[2], Mentions("eviction task 'nobody2' unknown"));
    REQUIRE(report.violation_count == 50);
    REQUIRE_THROWS_MESSAGE(verify::plan(s.snapshot, s.plan, {.max_violations = 0}), InvalidInput,
                           "max_violations: 0; expected 1");
}

TEST_CASE("a snapshot that makes no sense is refused") {
    const auto refused = [](const std::function<void(Scenario&)>& spoil, const std::string& part) {
        auto s = scenario();
        spoil(s);
        REQUIRE_THROWS_MESSAGE(verify::plan(s.snapshot, s.plan), InvalidInput, part);
    };
    refused([](auto& s) { s.node("n1").name = "n0"; }, "node 'n0' duplicate");
    refused([](auto& s) { s.task("b").name = "a"; }, "task 'a' duplicate");
    refused([](auto& s) { s.task("b").node = "nx"; }, "task 'b' unknown node 'nx'");
    refused([](auto& s) { s.task("b").gpus = {9}; }, "task 'b' holds GPU 9 node 'n0' lacks");
    refused([](auto& s) { s.node("n1").gpu_count = -1; }, "node 'n1' impossible GPUs");
    refused([](auto& s) { s.node("n1").failed_gpus = {4}; }, "node 'n1' impossible GPUs");
    refused([](auto& s) { s.task("b").affinity = {{"g", 1'000'000'000}}; }, "names level 1000000000");
}
