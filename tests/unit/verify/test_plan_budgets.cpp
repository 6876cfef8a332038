// SPDX-License-Identifier: Apache-2.0
// The plan checker on how tasks move, disruption budgets, chains and opened nodes.
#include "plan_scenario.hpp"

using namespace gpusched;
using namespace testing_support;

namespace {

/// The scenario, in which `a` restarts and `b` is suspended: chain 0 empties n0. One of the two may be down; `spot` counts in
/// a budget of its own.
Scenario restarting() {
    auto s = scenario();
    s.task("a").how = Mobility::restart;
    s.task("b").how = Mobility::suspend;
    s.snapshot.budgets = {{"job", {"a", "b"}, {}, 2, false}, {"spot", {"spot"}, {}, 1, false}};
    for (auto& move : s.plan.moves) {
        move.how = MoveMode::restart;
        move.chain = 0;
        move.serves = "n0";
    }
    return s;
}

void set_goal(Scenario& s, Goal goal, bool reached) {
    s.plan.goal = std::move(goal);
    s.plan.goal_reached = reached;
}

}  // namespace

TEST_CASE("a plan of restarts within its budgets is valid") {
    auto s = restarting();
    CHECK(verify::plan(s.snapshot, s.plan).ok);
    // A task is down until its wave ends only: one may be down, and each wave restarts one.
    s.snapshot.budgets[0].allowed_down = 1;
    s.plan.moves[1].wave = 1;
    s.plan.moves[2].wave = 2;
    s.plan.waves = 3;
    CHECK(verify::plan(s.snapshot, s.plan).ok);
    // Copies take nothing from a budget.
    auto copies = scenario();
    copies.snapshot.budgets = {{"all", {"a", "b", "c", "d"}, {}, 0, false}};
    CHECK(verify::plan(copies.snapshot, copies.plan).ok);
}

TEST_CASE("the source of a task that restarts is free when its wave starts, that of a copy is not") {
    auto s = restarting();
    // c comes to n0 after a and b leave, which are the only ones in its way.
    s.node("n0").cpu_milli = 2000;
    s.plan.moves = {{"a", "n0", "n1", {2, 3}, 0, MoveMode::restart}, {"c", "n1", "n0", {0}, 0}};
    s.plan.waves = 1;
    s.plan.vacated_nodes.clear();
    CHECK(verify::plan(s.snapshot, s.plan).ok);
    s.task("a").how = Mobility::copy;
    s.plan.moves[0].how = MoveMode::copy;
    const auto report = verify::plan(s.snapshot, s.plan);
    REQUIRE(report.violation_count == 2);
    CHECK_THAT(report.violations[0], Catch::Matchers::ContainsSubstring("cpu_milli: needs 1000"));
    CHECK_THAT(report.violations[1], Catch::Matchers::ContainsSubstring("gpus: GPU 0: needs 1000"));
}

TEST_CASE("a victim that is placed again in the same plan is one task") {
    auto s = scenario();
    s.plan.placements = {{"spot", "n4", {0, 1, 2, 3}}};
    s.plan.vacated_nodes = {"n0", "n3"};
    CHECK(verify::plan(s.snapshot, s.plan).ok);
}

TEST_CASE("a plan may lead to an empty node that it opens") {
    auto s = scenario();
    s.plan.moves[2].to = "n4";
    s.plan.opened_nodes = {"n4"};
    CHECK(verify::plan(s.snapshot, s.plan).ok);
}

TEST_CASE("a bound counts vacated nodes minus opened ones") {
    ClusterSpec snapshot;
    for (const auto* name : {"a", "b", "empty"})
        snapshot.nodes.push_back({.name = name, .gpu_model = "H20", .gpu_count = 4, .cpu_milli = 8000});
    for (const auto* name : {"x", "y"}) {
        snapshot.tasks.push_back({.name = name, .cpu_milli = 1000});
        snapshot.tasks.back().node = name == std::string("x") ? "a" : "b";
    }
    PlanSpec plan{.waves = 1,
                  .moves = {{.task = "x", .from = "a", .to = "empty"}},
                  .vacated_nodes = {"a"},
                  .bound = {.occupied_nodes_at_least = 2, .method = "counting"},
                  .opened_nodes = {"empty"}};
    CHECK(verify::plan(snapshot, plan).ok);
    plan.moves.push_back({.task = "y", .from = "b", .to = "empty"});
    plan.vacated_nodes = {"a", "b"};
    const auto report = verify::plan(snapshot, plan);
    CHECK_THAT(report.violations, MentionsEach({"bound occupied_nodes_at_least 2 reaches 1",
                                                "bound vacated_nodes_at_most 0 reaches 1",
                                                "bound vacated_gpus_at_most 0 reaches 4"}));
}

TEST_CASE("empty nodes and slots after the plan are counted exactly") {
    struct Row {
        const char* name;
        Goal goal;  ///< without its number
        std::int64_t there;
        std::function<void(Scenario&)> change = [](auto&) {};
    };
    const Goal nodes;
    const auto slots = [](SlotShape shape) { return Goal{.slots = shape}; };
    // n0 and n4 are empty in the end.
    const std::vector<Row> rows{
        {"all nodes", nodes, 2},
        {"of a GPU model", {.gpu_model = "A"}, 1, [](auto& s) { s.node("n4").gpu_model = "B"; }},
        {"a cordoned node", nodes, 1, [](auto& s) { s.node("n4").schedulable = false; }},
        {"no GPU works", nodes, 1,
         [](auto& s) {
             s.node("n4").failed_gpus = {0, 1, 2, 3};
         }},
        {"a taint that other nodes lack", nodes, 1,
         [](auto& s) {
             s.node("n4").taints = {{"k", "", "NoSchedule"}};
         }},
        {"a taint that other models lack", nodes, 2,
         [](auto& s) {
             s.node("n4").gpu_model = "B";
             s.node("n4").taints = {{"k", "", "NoSchedule"}};
         }},
        {"a soft taint", nodes, 2,
         [](auto& s) {
             s.node("n4").taints = {{"k", "", "PreferNoSchedule"}};
         }},
        {"usable by a task that tolerates a taint",
         {.usable_by = "waiting"},
         2,
         [](auto& s) {
             s.node("n4").taints = {{"k", "", "NoSchedule"}};
             s.task("waiting").tolerations = {{.key = "k", .op = "Exists"}};
         }},
        {"usable by a task of a GPU model",
         {.usable_by = "waiting"},
         1,
         [](auto& s) {
             s.node("n4").gpu_model = "B";
             s.task("waiting").gpu_models = {"A"};
         }},
        {"usable by a task of several GPU models",
         {.usable_by = "waiting"},
         2,
         [](auto& s) {
             s.node("n4").gpu_model = "B";
             s.task("waiting").gpu_models = {"A", "B"};
         }},
        {"usable by a task with a selector",
         {.usable_by = "waiting"},
         1,
         [](auto& s) {
             s.node("n3").labels["k"] = s.node("n4").labels["k"] = "v";
             s.task("waiting").node_selector = {{"k", "v"}};
         }},
        // The nodes could hold it without the tasks that may move.
        {"usable by a task that needs all GPUs",
         {.usable_by = "user"},
         1,
         [](auto& s) {
             s.node("n4").failed_gpus = {3};
             s.snapshot.tasks.push_back({.name = "user", .gpu_count = 4});
         }},
        {"usable by a task that needs more cores",
         {.usable_by = "user"},
         1,
         [](auto& s) {
             s.node("n4").cpu_milli = 3000;
             s.snapshot.tasks.push_back({.name = "user", .cpu_milli = 4000});
         }},
        {"usable by a task that needs more memory",
         {.usable_by = "user"},
         1,
         [](auto& s) {
             s.node("n4").memory_mib = 3000;
             s.snapshot.tasks.push_back({.name = "user", .memory_mib = 4000});
         }},
        {"usable by a task that needs more GPU memory",
         {.usable_by = "user"},
         1,
         [](auto& s) {
             s.node("n4").gpu_memory_mib = 8192;
             s.snapshot.tasks.push_back({.name = "user", .gpu_count = 1, .gpu_memory_mib = 16384});
         }},
        {"usable by a task that needs a resource",
         {.usable_by = "user"},
         1,
         [](auto& s) {
             s.node("n4").resources["hca"] = 2;
             s.snapshot.tasks.push_back({.name = "user", .resources = {{"hca", 2}}});
         }},
        {"usable by a task that needs what a daemon leaves",
         {.usable_by = "user"},
         1,
         [](auto& s) {
             s.node("n4").resources["hca"] = s.node("n0").resources["hca"] = 2;
             s.snapshot.tasks.push_back(
                 {.name = "agent", .daemon = true, .node = "n0", .resources = {{"hca", 1}}});
             s.snapshot.tasks.push_back({.name = "user", .resources = {{"hca", 2}}});
         }},
        {"usable by a task that needs a device",
         {.usable_by = "user"},
         1,
         [](auto& s) {
             s.node("n4").devices = s.node("n0").devices = {{"mig", 1}};
             s.node("n0").failed_gpus = {4};
             s.snapshot.tasks.push_back({.name = "user", .device_count = 1, .device_classes = {"mig"}});
         }},
        {"usable by a task that needs GPUs on one NUMA node",
         {.usable_by = "user"},
         1,
         [](auto& s) {
             s.node("n4").failed_gpus = {0, 2};
             s.snapshot.tasks.push_back(
                 {.name = "user",
                  .gpu_count = 2,
                  .hardware_affinity = {{.level = HardwareLevel::numa, .qos = HardwareQos::guaranteed}}});
         }},
        {"one GPU", slots({.gpu_count = 1}), 4 + 2 + 2 + 1 + 4 + 1},
        {"four GPUs", slots({.gpu_count = 4}), 2},
        {"a failed GPU", slots({.gpu_count = 4}), 1, [](auto& s) { s.node("n4").failed_gpus = {3}; }},
        {"CPU", slots({.cpu_milli = 3000}), 2 + 2 + 2 + 2 + 2 + 1},
        {"a node without CPU", slots({.cpu_milli = 1}), 8000 + 6000 + 6000 + 7000 + 5000,
         [](auto& s) { s.node("n4").cpu_milli = 0; }},
        {"memory", slots({.memory_mib = 4096}), 2 + 1 + 1 + 1 + 2 + 1},
        {"GPUs and CPU", slots({.gpu_count = 1, .cpu_milli = 3000}), 2 + 2 + 2 + 1 + 2 + 1},
    };
    for (const auto& row : rows) {
        DYNAMIC_SECTION(row.name) {
            auto s = scenario();
            row.change(s);
            const auto accepted = [&](std::int64_t number, bool reached) {
                auto goal = row.goal;
                (goal.slots ? goal.count : goal.empty_nodes) = number;
                set_goal(s, goal, reached);
                return verify::plan(s.snapshot, s.plan).ok;
            };
            CHECK(accepted(row.there, true));
            CHECK_FALSE(accepted(row.there, false));
            CHECK(accepted(row.there + 1, false));
            CHECK_FALSE(accepted(row.there + 1, true));
        }
    }
}

TEST_CASE("every corruption of version 2 fields is found and named") {
    const std::string a0 = "wave 1, move #0 of task 'a' from 'n0' to 'n1': ";
    const std::string b0 = "wave 1, move #1 of task 'b' from 'n0' to 'n1': ";
    const std::string a1 = "wave 2, move #2 of task 'a' from 'n1' to 'n2': ";
    const std::vector<Corruption> corruptions{
        // How
        {"a copy of a task that can only restart",
         [](auto& s) { s.plan.moves[0].how = MoveMode::copy; },
         {a0 + "how: is copy, but the task can move by restart"}},
        {"a copy of a task that can only be suspended",
         [](auto& s) { s.plan.moves[1].how = MoveMode::copy; },
         {b0 + "how: is copy, but the task can move by suspend"}},
        {"a restart of a task that can be copied",
         [](auto& s) { s.task("b").how = Mobility::copy; },
         {b0 + "how: is restart, but the task can move by copy"}},
        {"a task that never moves",
         [](auto& s) { s.task("b").how = Mobility::none; },
         {b0 + "how: the task never moves"}},
        // Budgets
        {"one more down than may be",
         [](auto& s) { s.snapshot.budgets[0].allowed_down = 1; },
         {b0 + "budgets: 2 tasks of 'job' would be down, 1 may be"}},
        {"a budget that is broken allows none",
         [](auto& s) { s.snapshot.budgets[0].broken = true; },
         {a0 + "budgets: 1 task of 'job' would be down, 0 may be",
          b0 + "budgets: 2 tasks of 'job' would be down, 0 may be",
          a1 + "budgets: 1 task of 'job' would be down, 0 may be"}},
        {"an eviction that a budget forbids",
         [](auto& s) { s.snapshot.budgets[1].allowed_down = 0; },
         {"eviction of task 'spot': budgets: 1 task of 'spot' would be down, 0 may be"}},
        {"a victim is down while others restart",
         [](auto& s) { s.snapshot.budgets[0].tasks.push_back("spot"); },
         {b0 + "budgets: 3 tasks of 'job' would be down, 2 may be"}},
        {"a budget of a group",
         [](auto& s) {
             s.task("b").anti_affinity = {{"g", node_level, 5}};
             s.snapshot.budgets = {{"g", {}, {"g"}, 0, false}};
         },
         {b0 + "budgets: 1 task of 'g' would be down, 0 may be"}},
        {"a budget of a group that a task lists",
         [](auto& s) {
             s.task("b").groups = {"g"};
             s.snapshot.budgets = {{"g", {}, {"g"}, 0, false}};
         },
         {b0 + "budgets: 1 task of 'g' would be down, 0 may be"}},
        {"a task in two budgets",
         [](auto& s) {
             s.snapshot.budgets.push_back({"b", {"b"}, {}, 0, false});
         },
         {b0 + "budgets: 1 task of 'b' would be down, 0 may be"}},
        // Chains
        {"a chain below zero",
         [](auto& s) { s.plan.moves[1].chain = -2; },
         {"move #1 of task 'b': chain: is -2"}},
        {"a chain that serves two nodes",
         [](auto& s) { s.plan.moves[1].serves = ""; },
         {"move #1 of task 'b': for: no node, but an earlier move of chain 0 serves 'n0'"}},
        {"for an unknown node",
         [](auto& s) {
             s.plan.moves[1].chain.reset();
             s.plan.moves[1].serves = "x";
         },
         {"move #1 of task 'b': for: unknown node 'x'"}},
        {"for a node that is not vacated",
         [](auto& s) {
             s.plan.moves[1].chain = 1;
             s.plan.moves[1].serves = "n2";
         },
         {"move #1 of task 'b': for: node 'n2' is none of vacated_nodes"}},
        // Opened nodes
        {"an empty node that is not opened",
         [](auto& s) { s.plan.moves[2].to = "n4"; },
         {"wave 2, move #2 of task 'a' from 'n1' to 'n4': to: the node was empty before the plan"}},
        {"an opened node to which nothing moves",
         [](auto& s) { s.plan.opened_nodes = {"n4"}; },
         {"opened_nodes: no move leads to node 'n4'"}},
        {"an opened node that was in use",
         [](auto& s) { s.plan.opened_nodes = {"n1"}; },
         {"opened_nodes: node 'n1' held tasks other than daemons from the start"}},
        {"an unknown opened node",
         [](auto& s) { s.plan.opened_nodes = {"x"}; },
         {"opened_nodes: unknown node 'x'"}},
        {"an opened node twice",
         [](auto& s) {
             s.plan.moves[2].to = "n4";
             s.plan.opened_nodes = {"n4", "n4"};
         },
         {"opened_nodes: node 'n4' is listed twice"}},
        // Goals
        {"a goal that is not there",
         [](auto& s) { set_goal(s, {.empty_nodes = 5}, true); },
         {"goal_reached: is true, but there are "}},
        {"a goal that is there",
         [](auto& s) { set_goal(s, {.empty_nodes = 1}, false); },
         {"goal_reached: is false, but there are "}},
        {"slots that are not there",
         [](auto& s) { set_goal(s, {.slots = SlotShape{.gpu_count = 1}, .count = 1000}, true); },
         {"goal_reached: is true, but there are "}},
        {"a goal of an unknown GPU model",
         [](auto& s) { set_goal(s, {.empty_nodes = 1, .gpu_model = "x"}, true); },
         {"goal: no node has GPU model 'x'"}},
        {"a goal of two kinds",
         [](auto& s) { set_goal(s, {.empty_nodes = 1, .slots = SlotShape{.gpu_count = 1}}, true); },
         {"goal: it must ask for either empty_nodes or slots"}},
        {"a goal of no node",
         [](auto& s) { set_goal(s, {.empty_nodes = 0}, true); },
         {"goal: empty_nodes is less than 1"}},
        {"slots for nothing",
         [](auto& s) { set_goal(s, {.slots = SlotShape{}}, true); },
         {"goal: the slots request no resource"}},
        {"slots of less than nothing",
         [](auto& s) { set_goal(s, {.slots = SlotShape{.cpu_milli = -1}}, true); },
         {"goal: a request of the slots is negative"}},
        {"a count of nodes",
         [](auto& s) { set_goal(s, {.empty_nodes = 1, .count = 1}, true); },
         {"goal: count cannot be combined with empty_nodes"}},
        {"no slot",
         [](auto& s) { set_goal(s, {.slots = SlotShape{.cpu_milli = 1}, .count = 0}, true); },
         {"goal: count is less than 1"}},
        {"a goal reached that nobody had",
         [](auto& s) { s.plan.goal_reached = true; },
         {"goal_reached: there is no goal"}},
    };
    check_corruptions(corruptions, restarting);
}
