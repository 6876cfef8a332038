// SPDX-License-Identifier: Apache-2.0
// The plan checker on groups that tasks avoid, want near or spread.
#include "plan_scenario.hpp"

using namespace gpusched;
using namespace testing_support;

namespace {

constexpr Level zone = first_label_level;

/// The scenario, with n0 and n1 in zone a, n2 and n3 in zone b, n4 in zone c, and n5 in none.
Scenario zones() {
    auto s = scenario();
    s.snapshot.label_levels = {"zone"};
    for (const auto& [node, value] :
         {std::pair("n0", "a"), {"n1", "a"}, {"n2", "b"}, {"n3", "b"}, {"n4", "c"}})
        s.node(node).labels["zone"] = value;
    return s;
}

}  // namespace

TEST_CASE("every corruption of a plan by groups that others select is found and named") {
    const std::string a0 = "wave 1, move #0 of task 'a' from 'n0' to 'n1': ";
    const std::string b0 = "wave 1, move #1 of task 'b' from 'n0' to 'n1': ";
    const std::string a1 = "wave 2, move #2 of task 'a' from 'n1' to 'n2': ";
    const std::string w = "placement #0 of task 'waiting' on 'n3': ";
    const std::vector<Corruption> corruptions{
        {"it avoids who is there",
         [](auto& s) {
             s.task("d").groups = {"g"};
             s.task("a").avoid = {{"g", zone}};
         },
         {a1 + "pod anti-affinity: members of group 'g' are in its domain at label 'zone'"}},
        {"who is there avoids it",
         [](auto& s) {
             s.task("a").groups = {"g"};
             s.task("d").avoid = {{"g", node_level}};
         },
         {a1 + "pod anti-affinity: a task that avoids group 'g', which the task lists, is in its domain"}},
        {"two that avoid each other arrive together",
         [](auto& s) {
             s.task("a").groups = {"g"};
             s.task("b").avoid = {{"g", node_level}};
         },
         {a0 + "pod anti-affinity: a task that avoids group 'g'",
          b0 + "pod anti-affinity: members of group 'g' are in its domain at node"}},
        {"it avoids whose old copy is still there",
         [](auto& s) {
             s.task("b").groups = {"g"};
             s.task("c").avoid = {{"g", node_level}};
             s.plan.waves = 1;
             s.plan.moves = {{"c", "n1", "n0", {3}, 0}};
             s.plan.vacated_nodes = {"n1"};
             s.plan.bound.method = "";
         },
         {"wave 1, move #0 of task 'c' from 'n1' to 'n0': pod anti-affinity: members of group 'g' are in its "
          "domain at "
          "node"}},
        {"what it wants near is elsewhere",
         [](auto& s) {
             s.task("c").groups = {"g"};
             s.task("a").near = {{"g", zone}};
         },
         {a1 + "pod affinity: no member of group 'g' is in its domain at label 'zone'"}},
        {"nobody that it wants near runs, and it is none of them",
         [](auto& s) {
             s.task("waiting").near = {{"g", zone}};
         },
         {w + "pod affinity: no member of group 'g'"}},
        {"what it wants near is in two tasks",
         [](auto& s) {
             s.task("d").groups = {"g"};
             s.task("b").groups = {"h"};
             s.task("waiting").near = {{"g", zone}, {"h", 0}};
         },
         {w + "pod affinity: no member of group 'h'"}},
        {"near, on a node without the label",
         [](auto& s) {
             s.task("a").groups = {"g"};
             s.task("a").near = {{"g", zone}};
             s.node("n2").labels.clear();
         },
         {a1 + "pod affinity: the node has no domain at label 'zone'"}},
        {"its domain is the fuller one",
         [](auto& s) {
             s.task("d").groups = {"g"};
             s.task("a").groups = {"g"};
             s.task("a").spread = {{.group = "g", .level = zone}};
         },
         {a1 + "topology spread: its domain at label 'zone' would hold 2 members of group 'g', another 0; "
               "maxSkew is 1"}},
        {"there are fewer domains than asked for",
         [](auto& s) {
             s.task("d").groups = s.task("c").groups = s.task("h").groups = {"g"};
             s.task("a").groups = {"g"};
             s.task("a").node_selector = {{"pool", "p"}};
             for (const char* node : {"n1", "n2"}) s.node(node).labels["pool"] = "p";
             s.task("a").spread = {{.group = "g", .level = zone, .min_domains = 3}};
         },
         {a0 + "topology spread: its domain at label 'zone' would hold 2 members of group 'g', another 0",
          a1 + "topology spread: its domain at label 'zone' would hold 2 members of group 'g', another 0"}},
        {"a domain that only taints keep it from counts",
         [](auto& s) {
             s.task("d").groups = s.task("c").groups = {"g"};
             s.task("waiting").groups = {"g"};
             s.node("n4").taints = {{"k", "", "NoSchedule"}};
             s.task("waiting").spread = {{.group = "g", .level = zone}};
         },
         {w + "topology spread: its domain at label 'zone' would hold 2 members of group 'g', another 0"}},
        {"too many in a domain of a label",
         [](auto& s) {
             s.task("d").anti_affinity = s.task("a").anti_affinity = {{"g", zone, 1}};
         },
         {a1 + "anti-affinity: group 'g' at label 'zone' would have 2 members together, the limit is 1"}},
        {"members in two domains of a label",
         [](auto& s) {
             s.task("c").affinity = s.task("a").affinity = {{"g", zone}};
         },
         {a1 + "affinity: group 'g' at label 'zone' would be spread over several domains"}},
        {"affinity, on a node without the label",
         [](auto& s) {
             s.task("a").affinity = {{"g", zone}};
             s.node("n2").labels.clear();
         },
         {a1 + "affinity: the node has no domain at label 'zone'"}},
        {"spread, on a node without the label",
         [](auto& s) {
             s.task("waiting").spread = {{.group = "g", .level = zone}};
             s.node("n3").labels.clear();
         },
         {w + "topology spread: the node has no domain at label 'zone'"}},
    };
    check_corruptions(corruptions, zones);
}

TEST_CASE("valid plans that look wrong about groups that others select") {
    auto s = zones();
    const auto accepted = [&] {
        const auto report = verify::plan(s.snapshot, s.plan);
        INFO((report.ok ? "" : report.violations.front()));
        CHECK(report.ok);
    };
    SECTION("a task's own old copy does not count") {
        s.task("a").groups = {"g"};
        s.task("a").avoid = {{"g", 0}};
        s.task("a").spread = {{.group = "g", .level = zone}};
        s.task("a").near = {{"g", zone}};
        accepted();
    }
    SECTION("no task is avoided on a node without the label") {
        s.task("claim").groups = {"g"};
        s.task("h").avoid = {{"g", zone}};
        s.plan.moves.push_back({"d", "n2", "n5", {}, 1});
        s.task("d").groups = {"g"};
        s.plan.bound.method = "";
        accepted();
    }
    SECTION("a task that breaks them from the start may stay") {
        s.task("h").avoid = {{"g", node_level}};
        s.task("claim").groups = {"g"};
        s.task("h").near = {{"nobody", zone}};
        accepted();
    }
    SECTION("members arrive in one wave with the tasks that need them near") {
        s.task("a").near = {{"g", node_level}};
        s.task("b").groups = {"g"};
        s.plan.moves[2] = {"b", "n1", "n2", {0}, 1};
        accepted();
    }
    SECTION("domains that its selector excludes do not count") {
        s.task("d").groups = s.task("a").groups = {"g"};
        s.task("a").spread = {{.group = "g", .level = zone}};
        s.task("a").node_affinity = {{{{"zone", MatchOperator::in, {"b"}}}, {}}};
        s.plan.moves = {{"a", "n0", "n2", {0, 1}, 0}, {"b", "n0", "n1", {1}, 1}};
        accepted();
    }
}

TEST_CASE("levels that are no labels of the snapshot are refused") {
    auto s = zones();
    s.task("a").avoid = {{"g", zone + 1}};
    REQUIRE_THROWS_AS(verify::plan(s.snapshot, s.plan), InvalidInput);
}
