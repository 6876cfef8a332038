// SPDX-License-Identifier: Apache-2.0
// The plan checker on every way to spoil a valid plan.
#include "plan_scenario.hpp"

using namespace gpusched;
using namespace testing_support;

TEST_CASE("every corruption of a plan is found and named") {
    const std::string a0 = "wave 1, move #0 of task 'a' from 'n0' to 'n1': ";
    const std::string b0 = "wave 1, move #1 of task 'b' from 'n0' to 'n1': ";
    const std::string a1 = "wave 2, move #2 of task 'a' from 'n1' to 'n2': ";
    const std::string w = "placement #0 of task 'waiting' on 'n3': ";
    // A step that cannot be carried out is left out, which shows at the end.
    const std::string left_out = "vacated_nodes: node 'n3' is vacated, but not listed";
    const std::vector<Corruption> corruptions{
        // Resources
        {"CPU",
         [](auto& s) { s.node("n1").cpu_milli = 2999; },
         {b0 + "cpu_milli: needs 1000, but 999 of 2999 is free"}},
        {"CPU, sources are still held",
         [](auto& s) {
             s.node("n1").cpu_milli = 3000;
             s.plan.moves[2].wave = 0;  // c comes while a and b have not left
             s.plan.moves[2] = {"d", "n2", "n1", {}, 1};
             s.plan.moves.push_back({"b", "n1", "n2", {3}, 1});
         },
         {"wave 2, move #2 of task 'd' from 'n2' to 'n1': cpu_milli: needs 1000, but 0 of 3000 is free"}},
        {"cores, which nobody counts",
         [](auto& s) { s.task("b").cpu_local = s.task("waiting").cpu_local = true; },
         {b0 + "cpu_local: cannot be checked, because the checker does not count cores",
          w + "cpu_local: cannot be checked, because the checker does not count cores"}},
        {"memory",
         [](auto& s) { s.node("n2").memory_mib = 2047; },
         {a1 + "memory_mib: needs 1024, but 1023 of 2047"}},
        {"a named resource",
         [](auto& s) {
             s.node("n3").resources = {{"nic", 1}};
             s.task("waiting").resources = {{"nic", 2}, {"fpga", 1}};
         },
         {w + "resource 'fpga': needs 1, but 0 of 0", w + "resource 'nic': needs 2, but 1 of 1"}},
        {"a GPU that is held",
         [](auto& s) {
             s.plan.moves[0].gpus = {0, 2};
         },
         {a0 + "gpus: GPU 0: needs 1000, but 0 of 1000"}},
        {"a GPU that another move takes",
         [](auto& s) { s.plan.moves[1].gpus = {2}; },
         {b0 + "gpus: GPU 2: needs 500, but 0 of 1000"}},
        {"a share that is too large",
         [](auto& s) {
             s.task("b").gpu_share_milli = 600;
             s.task("c").gpu_share_milli = 500;
             s.plan.moves[1].gpus = {0};
         },
         {b0 + "gpus: GPU 0: needs 600, but 500 of 1000"}},
        {"a failed GPU", [](auto& s) { s.node("n2").failed_gpus = {1}; }, {a1 + "gpus: GPU 1 has failed"}},
        {"GPU memory",
         [](auto& s) {
             s.task("c").gpu_share_milli = 500;
             s.task("c").gpu_memory_mib = 10000;
             s.task("b").gpu_memory_mib = 6385;
             s.plan.moves[1].gpus = {0};
         },
         {b0 + "gpu_memory_mib: GPU 0: needs 6385, but 6384 of 16384"}},
        {"a Standby claim on GPUs",
         [](auto& s) {
             s.plan.moves[2] = {"a", "n1", "n5", {0, 2}, 1};
         },
         {"wave 2, move #2 of task 'a' from 'n1' to 'n5': gpus: GPU 0: needs 1000, but 0 of 1000"}},
        {"a Standby claim on CPU",
         [](auto& s) {
             s.node("n5").cpu_milli = 3999;
             s.task("a").gpu_count = 1;
             s.task("a").gpus = {0};
             s.plan.moves[0].gpus = {2};
             s.plan.moves[2] = {"a", "n1", "n5", {2}, 1};
         },
         {"wave 2, move #2 of task 'a' from 'n1' to 'n5': cpu_milli: needs 1000, but 999 of 3999"}},
        // GPUs that cannot be
        {"too few GPUs",
         [](auto& s) { s.plan.moves[2].gpus = {0}; },
         {a1 + "gpus: names 1, but the task asks for 2"}},
        {"GPUs for a task without",
         [](auto& s) {
             s.plan.placements = {{"waiting", "n3", {}}};
         },
         {w + "gpus: names 0, but the task asks for 3"}},
        {"a GPU twice",
         [](auto& s) {
             s.plan.placements[0].gpus = {0, 0, 1};
         },
         {w + "gpus: names GPU 0 twice", left_out}},
        {"a GPU out of range",
         [](auto& s) {
             s.plan.placements[0].gpus = {0, 1, 4};
         },
         {w + "gpus: names GPU 4, but 'n3' has 4", left_out}},
        {"a negative GPU",
         [](auto& s) {
             s.plan.placements[0].gpus = {0, 1, -1};
         },
         {w + "gpus: names GPU -1, but 'n3' has 4", left_out}},
        // GPUs and devices that the snapshot does not name
        {"the lowest GPU with enough left is held",
         [](auto& s) {
             s.task("b").gpus.clear();
             s.task("b").assign_gpus = true;  // GPU 2
             s.plan.moves.push_back({"c", "n1", "n0", {2}, 0});
             s.plan.moves[1].wave = 1;
             s.plan.vacated_nodes.clear();
         },
         {"wave 1, move #3 of task 'c' from 'n1' to 'n0': gpus: GPU 2: needs 1000, but 500 of 1000"}},
        {"the lowest healthy GPU is held",
         [](auto& s) {
             s.node("n1").failed_gpus = {0};
             s.task("c").gpus.clear();
             s.task("c").assign_gpus = true;  // GPU 1
         },
         {b0 + "gpus: GPU 1: needs 500, but 0 of 1000"}},
        {"failed GPUs are held if too few are healthy",
         [](auto& s) {
             s.node("n3").failed_gpus = {0};
             s.task("spot").gpus.clear();
             s.task("spot").assign_gpus = true;  // all four
             s.plan.evictions.clear();
             s.plan.placements[0].gpus = {1, 2, 3};
         },
         std::vector<std::string>(3, w + "gpus: GPU")},
        {"devices of the first class that has enough are held",
         [](auto& s) {
             s.node("n5").failed_gpus = {2};
             s.node("n5").devices = {{"large", 2}, {"small", 1}};
             auto& h = s.task("h");
             h.gpu_count = 0;
             h.gpus.clear();
             h.assign_gpus = true;  // devices 4 and 5
             h.device_count = 2;
             h.device_classes = {"small", "large"};
             s.task("waiting").gpu_count = 0;
             s.task("waiting").device_count = 1;
             s.task("waiting").device_classes = {"large"};
             s.plan.placements[0] = {"waiting", "n5", {4}};
             s.plan.vacated_nodes.push_back("n3");
         },
         {"placement #0 of task 'waiting' on 'n5': devices: 4 is held by another task"}},
        // Which nodes a task accepts
        {"GPU model",
         [](auto& s) {
             s.task("b").gpu_models = {"B", "C"};
         },
         {b0 + "GPU model: 'A' is not among"}},
        {"GPU model without GPUs",
         [](auto& s) {
             s.task("d").gpu_models = {"B"};
             s.plan.moves.push_back({"d", "n2", "n1", {}, 1});
         },
         {"wave 2, move #3 of task 'd' from 'n2' to 'n1': GPU model"}},
        {"node selector",
         [](auto& s) {
             s.task("b").node_selector = {{"disk", "ssd"}};
         },
         {b0 + "node selector: the node lacks label disk=ssd"}},
        {"taint",
         [](auto& s) {
             s.node("n2").taints = {{"k", "v", "NoExecute"}};
         },
         {a1 + "taint: k=v:NoExecute is not tolerated"}},
        {"cordon", [](auto& s) { s.node("n3").schedulable = false; }, {w + "cordoned"}},
        {"a node that is not ready",
         [](auto& s) {
             s.node("n3").schedulable = false;
             s.node("n3").taints = {{"node.kubernetes.io/not-ready", "", "NoSchedule"}};
         },
         {w + "not ready", w + "taint: node.kubernetes.io/not-ready=:NoSchedule is not tolerated"}},
        {"cordon by a taint",
         [](auto& s) {
             s.node("n3").schedulable = false;
             s.node("n3").taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
         },
         {w + "taint: node.kubernetes.io/unschedulable=:NoSchedule is not tolerated"}},
        {"guaranteed NUMA node",
         [](auto& s) {
             s.task("a").hardware_affinity = {{HardwareLevel::numa, HardwareQos::guaranteed}};
             s.plan.moves[2].gpus = {1, 2};
         },
         {a1 + "hardware affinity: guaranteed NUMA node, but its GPUs span 2"}},
        {"guaranteed socket, hardware unknown",
         [](auto& s) {
             s.task("a").hardware_affinity = {{HardwareLevel::socket, HardwareQos::guaranteed}};
             s.node("n2").hardware.reset();
         },
         {a1 + "hardware affinity: guaranteed socket, but the node's hardware is not known"}},
        // Groups
        {"anti-affinity on a node",
         [](auto& s) {
             s.task("c").anti_affinity = s.task("b").anti_affinity = {{"g", node_level, 1}};
         },
         {b0 + "anti-affinity: group 'g' at node would have 2 members together, the limit is 1"}},
        {"the smallest limit holds, at a level that only others name",
         [](auto& s) {
             s.task("c").anti_affinity = {{"g", 1, 2}};
             s.task("d").anti_affinity = {{"g", 1, 7}};
             s.task("waiting").anti_affinity = {{"g", 0, 9}};
             s.plan.placements[0] = {"waiting", "n0", {0, 1, 2}};
             s.plan.vacated_nodes = {"n3"};
         },
         {"placement #0 of task 'waiting' on 'n0': anti-affinity: group 'g' at network level 1 would have "
          "3"}},
        {"anti-affinity counts both copies of others",
         [](auto& s) {
             // a moves within switch s0 and so counts twice while b moves.
             s.task("a").anti_affinity = s.task("b").anti_affinity = {{"g", 1, 2}};
         },
         {a0 + "anti-affinity: group 'g' at network level 1 would have 3", b0 + "anti-affinity"}},
        {"affinity",
         [](auto& s) {
             s.task("c").affinity = s.task("a").affinity = {{"g", node_level}};
         },
         {a1 + "affinity: group 'g' at node would be spread"}},
        {"affinity at an unknown position",
         [](auto& s) {
             s.task("h").affinity = s.task("waiting").affinity = {{"g", 0}};
         },
         {w + "affinity: group 'g' at network level 0 would be spread"}},
        {"required network level, own old copy counts",
         [](auto& s) {
             s.task("a").network_affinity = NetworkAffinity{1, NetworkMode::required};
             s.plan.moves[2] = {"a", "n1", "n5", {2, 3}, 1};
             s.task("h").gpus = {1};
             s.task("claim").gpus = {0};
             s.task("claim").gpu_count = 1;
         },
         {"wave 2, move #2 of task 'a' from 'n1' to 'n5': network affinity: gang 'job' at network level 1"}},
        {"required network level binds members that do not ask for it",
         [](auto& s) {
             s.task("c").job = "other";
             s.task("c").network_affinity = NetworkAffinity{1, NetworkMode::required};
             s.task("waiting").job = "other";
         },
         {w + "network affinity: gang 'other' at network level 1"}},
        // Tasks that may be moved, evicted or placed
        {"a locked task", [](auto& s) { s.task("b").locked = true; }, {b0 + "locked: the task must stay"}},
        {"a daemon",
         [](auto& s) {
             s.task("d").daemon = true;
             s.plan.moves[2] = {"d", "n2", "n1", {}, 1};
         },
         {"wave 2, move #2 of task 'd' from 'n2' to 'n1': daemon: the task must stay"}},
        {"a Standby task",
         [](auto& s) {
             s.task("b").priority_class = PriorityClass::hp;
             s.task("b").standby = true;
         },
         {b0 + "standby: the task must stay"}},
        {"evicting what is not preemptible",
         [](auto& s) { s.task("spot").preemptible = false; },
         {"eviction of task 'spot': preemptible"}},
        {"evicting a locked task",
         [](auto& s) { s.task("spot").locked = true; },
         {"eviction of task 'spot': locked"}},
        {"evicting twice",
         [](auto& s) { s.plan.evictions.push_back("spot"); },
         {"eviction of task 'spot': it does not run any more"}},
        {"evicting a pending task",
         [](auto& s) { s.plan.evictions.push_back("waiting"); },
         {"eviction of task 'waiting': it does not run"}},
        {"evicting nobody",
         [](auto& s) { s.plan.evictions.push_back("x"); },
         {"eviction of task 'x': unknown task"}},
        {"no eviction where one is needed", [](auto& s) { s.plan.evictions.clear(); },
         std::vector<std::string>(3, w + "gpus: GPU")},
        {"moving an evicted task",
         [](auto& s) {
             s.plan.moves.push_back({"spot", "n3", "n5", {0, 1, 2, 3}, 1});
         },
         {"wave 2, move #3 of task 'spot' from 'n3' to 'n5': from: the task does not run"}},
        {"placing a running task",
         [](auto& s) {
             s.plan.placements.push_back({"d", "n3", {}});
         },
         {"placement #1 of task 'd' on 'n3': the task runs already, on 'n2'"}},
        {"placing twice",
         [](auto& s) {
             s.plan.placements.push_back({"waiting", "n4", {0, 1, 2}});
         },
         {"placement #1 of task 'waiting' on 'n4': the task is placed twice"}},
        {"placing the unknown",
         [](auto& s) {
             s.plan.placements.push_back({"x", "y", {}});
         },
         {"placement #1 of task 'x' on 'y': unknown task", "placement #1 of task 'x' on 'y': unknown node"}},
        // Moves
        {"an unknown task",
         [](auto& s) {
             s.plan.moves.push_back({"x", "n2", "n1", {}, 1});
         },
         {"wave 2, move #3 of task 'x' from 'n2' to 'n1': unknown task"}},
        {"unknown nodes",
         [](auto& s) {
             s.plan.moves.push_back({"d", "x", "y", {}, 1});
         },
         {"wave 2, move #3 of task 'd' from 'x' to 'y': from: unknown node", "to: unknown node"}},
        {"a wrong source",
         [](auto& s) { s.plan.moves[2].from = "n0"; },
         {"wave 2, move #2 of task 'a' from 'n0' to 'n2': from: the task is on 'n1'"}},
        {"a move to where the task is",
         [](auto& s) {
             s.plan.moves.push_back({"d", "n2", "n2", {}, 1});
         },
         {"wave 2, move #3 of task 'd' from 'n2' to 'n2': to: the task is there already"}},
        {"two moves in one wave",
         [](auto& s) {
             s.plan.moves.push_back({"a", "n1", "n3", {0, 1}, 1});
         },
         {"wave 2, move #3 of task 'a' from 'n1' to 'n3': the task moves a second time in this wave"}},
        {"an empty destination",
         [](auto& s) {
             s.plan.moves[2] = {"a", "n1", "n4", {0, 1}, 1};
         },
         {"wave 2, move #2 of task 'a' from 'n1' to 'n4': to: the node was empty before the plan"}},
        {"a destination with only a daemon",
         [](auto& s) {
             s.task("daemon").node = "n4";
             s.plan.moves[2] = {"a", "n1", "n4", {0, 1}, 1};
         },
         {"wave 2, move #2 of task 'a' from 'n1' to 'n4': to: the node was empty before the plan"}},
        {"an empty destination to which an earlier move led",
         [](auto& s) {
             s.plan.waves = 3;
             s.plan.moves[2] = {"a", "n1", "n4", {0, 1}, 1};
             s.plan.moves.push_back({"d", "n2", "n4", {}, 2});
             s.plan.vacated_nodes.push_back("n2");
         },
         {"wave 2, move #2 of task 'a' from 'n1' to 'n4': to: the node was empty before the plan",
          "wave 3, move #3 of task 'd' from 'n2' to 'n4': to: the node was empty before the plan"}},
        {"a node that ran empty, received again and is empty in the end",
         [](auto& s) {
             s.plan.waves = 4;
             s.plan.moves[0] = {"c", "n1", "n2", {3}, 0};
             s.plan.moves[1] = {"a", "n0", "n1", {2, 3}, 1};
             s.plan.moves[2] = {"b", "n0", "n2", {2}, 2};
             s.plan.moves.push_back({"a", "n1", "n2", {0, 1}, 3});
             s.plan.vacated_nodes = {"n0", "n1"};
         },
         {"wave 2, move #1 of task 'a' from 'n0' to 'n1': to: the node is one of vacated_nodes"}},
        {"a destination that is vacated later",
         [](auto& s) {
             s.plan.waves = 3;
             s.plan.moves[0] = {"c", "n1", "n2", {3}, 0};
             s.plan.moves[1].to = "n2";
             s.plan.moves[2] = {"d", "n2", "n0", {}, 1};
             s.plan.moves.push_back({"a", "n0", "n2", {1, 2}, 2});
             s.plan.moves.push_back({"d", "n0", "n2", {}, 2});
             s.plan.moves[1].gpus = {0};
             s.plan.vacated_nodes = {"n0", "n1"};
         },
         {"wave 2, move #2 of task 'd' from 'n2' to 'n0': to: the node is one of vacated_nodes"}},
        {"a job disturbed too much",
         [](auto& s) { s.snapshot.jobs[0].max_disrupted = 1; },
         {b0 + "max_disrupted: more than 1 member of job 'job' move in this wave"}},
        // Waves
        {"a wave without moves",
         [](auto& s) {
             s.plan.waves = 6;
             s.plan.moves[2].wave = 3;
         },
         {"wave 2: no moves up to wave 3", "wave 5: no moves up to wave 6"}},
        {"a wave beyond the last",
         [](auto& s) { s.plan.waves = 1; },
         {a1 + "wave: the plan has waves 1 to 1"}},
        {"a negative wave",
         [](auto& s) { s.plan.moves[0].wave = -1; },
         {"wave 0, move #0 of task 'a' from 'n0' to 'n1': wave: the plan has waves 1 to 2"}},
        {"fewer than no waves",
         [](auto& s) {
             s.plan.waves = -1;
             s.plan.moves.clear();
             s.plan.vacated_nodes.clear();
         },
         {"waves: the plan has -1 waves"}},
        // The outcome
        {"a vacated node left out",
         [](auto& s) { s.plan.vacated_nodes.clear(); },
         {"vacated_nodes: node 'n0' is vacated, but not listed"}},
        {"a node that is not vacated",
         [](auto& s) { s.plan.vacated_nodes.push_back("n5"); },
         {"vacated_nodes: node 'n5' still holds 2 tasks other than daemons"}},
        {"a node that was empty",
         [](auto& s) { s.plan.vacated_nodes.push_back("n4"); },
         {"vacated_nodes: node 'n4' was empty from the start"}},
        {"a vacated node twice",
         [](auto& s) { s.plan.vacated_nodes.push_back("n0"); },
         {"vacated_nodes: node 'n0' is listed twice"}},
        {"an unknown vacated node",
         [](auto& s) { s.plan.vacated_nodes.push_back("x"); },
         {"vacated_nodes: unknown node 'x'"}},
        {"a bound on nodes that the plan beats",
         [](auto& s) {
             s.plan.evictions.clear();
             s.plan.placements.clear();
             s.plan.bound.vacated_nodes_at_most = 0;
         },
         {"bound: vacated_nodes_at_most is 0, but the plan reaches 1"}},
        {"a bound on GPUs that the plan beats",
         [](auto& s) {
             s.plan.evictions.clear();
             s.plan.placements.clear();
             s.plan.bound.vacated_gpus_at_most = 3;
         },
         {"bound: vacated_gpus_at_most is 3, but the plan reaches 4"}},
        {"a bound on occupied nodes that the plan beats",
         [](auto& s) {
             s.plan.evictions.clear();
             s.plan.placements.clear();
             s.plan.bound.occupied_nodes_at_least = 5;
         },
         {"bound: occupied_nodes_at_least is 5, but the plan reaches 4"}},
        {"a bound on the value that the statistics beat",
         [](auto& s) {
             s.plan.evictions.clear();
             s.plan.placements.clear();
             s.plan.bound.value_at_most = 4;
             s.plan.stats["value_milli"] = 5;
         },
         {"bound: value_at_most is 4"}},
        {"a negative bound",
         [](auto& s) { s.plan.bound.vacated_nodes_at_most = -1; },
         {"bound: is negative"}},
    };
    check_corruptions(corruptions, scenario);
}

TEST_CASE("devices that a task may take") {
    const auto check = [](const std::vector<int>& gpus, const std::string& violation) {
        CAPTURE(gpus);
        auto s = scenario();
        s.node("n3").devices = {{"small", 1}, {"large", 3}};
        s.node("n3").failed_gpus = {7};
        s.task("waiting").gpu_count = 1;
        s.task("waiting").device_count = 2;
        s.task("waiting").device_classes = {"small", "large"};
        s.plan.placements[0].gpus = gpus;
        const auto report = verify::plan(s.snapshot, s.plan);
        CHECK(report.ok == violation.empty());
        REQUIRE(report.violation_count == (violation.empty() ? 0 : 1));
        if (!report.ok) CHECK_THAT(report.violations[0], Catch::Matchers::ContainsSubstring(violation));
    };
    check({0, 5, 6}, "");
    check({0}, "devices: names none");
    check({0, 5}, "devices: names 1 of class 'large'");
    check({0, 4, 5}, "devices: names 1 of class 'large' 1 of class 'small'");
    check({0, 5, 7}, "devices: 7 has failed");
}

TEST_CASE("node affinity of a task that arrives") {
    const auto arrives = [](const NodeMatch& match, const char* label) {
        auto s = scenario();
        s.task("waiting").node_affinity = {{{match}, {}}};
        if (label != nullptr) s.node("n3").labels["k"] = label;
        return verify::plan(s.snapshot, s.plan).ok;
    };
    struct Row {
        MatchOperator op;
        std::vector<std::string> values;
        const char* label;  ///< nullptr: the node lacks it
        bool arrives;
    };
    using enum MatchOperator;
    const auto* const absent = static_cast<const char*>(nullptr);
    for (const auto& [op, values, label, expected] : std::vector<Row>{
             {in, {"a", "b"}, "b", true},
             {in, {"a", "b"}, "c", false},
             {in, {"a"}, absent, false},
             {not_in, {"a"}, "a", false},
             {not_in, {"a"}, absent, true},
             {exists, {}, "", true},
             {exists, {}, absent, false},
             {does_not_exist, {}, absent, true},
             {does_not_exist, {}, "", false},
             {gt, {"3"}, "5", true},
             {gt, {"5"}, "5", false},
             {gt, {"-7"}, "-5", true},
             {gt, {"3"}, "+5", true},
             {gt, {"3"}, "--5", false},
             {gt, {"3"}, "5x", false},
             {gt, {"3"}, absent, false},
             {lt, {"5"}, "3", true},
             {lt, {"5"}, "5", false},
             {lt, {"-5"}, "-7", true},
             {lt, {"9223372036854775807"}, "-9223372036854775808", true},
             {lt, {"9223372036854775808"}, "0", false},
         }) {
        CAPTURE(static_cast<int>(op), values, label == nullptr ? "absent" : label);
        CHECK(arrives({"k", op, values}, label) == expected);
    }
}

TEST_CASE("a cordon by a taint lets a task in that tolerates it") {
    auto s = scenario();
    s.node("n3").schedulable = false;
    s.node("n3").taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
    s.task("waiting").tolerations = {{.key = "node.kubernetes.io/unschedulable", .op = "Exists"}};
    CHECK(verify::plan(s.snapshot, s.plan).ok);
    s.node("n3").taints.clear();
    CHECK_FALSE(verify::plan(s.snapshot, s.plan).ok);
}
