// SPDX-License-Identifier: Apache-2.0
#include "example_clusters.hpp"
#include "support/catch.hpp"

using namespace testing_support;
using con::NodeFate;

TEST_CASE("explain names the task and the constraint") {
    ClusterSpec spec{.nodes = {node("a"), node("b"), node("c", 2), node("d"), node("e", 8, "other")},
                     .tasks = {task("x", "a", {0}), task("l", "b", {0, 1}, true),
                               task("wide", "d", {0, 1, 2, 3, 4, 5, 6, 7}), task("alien", "e", {0})}};
    spec.tasks[0].gpu_models = spec.tasks[2].gpu_models = {"H20"};
    spec.tasks[3].gpu_models = {"other"};
    const auto cluster = Cluster::build(spec);
    const auto plan = con::consolidate(cluster, {.preset = con::Preset::fast}).plan;
    const auto about = [&](const char* name) { return con::explain(cluster, plan, cluster.find_node(name)); };

    CHECK(about("a").fate == NodeFate::vacated);
    CHECK(about("c").fate == NodeFate::empty);
    const auto b = about("b");
    CHECK(b.fate == NodeFate::has_fixed);
    REQUIRE(b.blockers.size() == 1);
    CHECK(b.blockers[0].fixed_by == con::FixedBy::locked);
    CHECK(b.received == std::vector{cluster.find_task("x")});
    CHECK(b.text.find("task 'l' must stay (locked)") != std::string::npos);
    const auto d = about("d");
    CHECK(d.fate == NodeFate::has_stuck);
    REQUIRE(d.blockers.size() == 1);
    CHECK(d.blockers[0].task == cluster.find_task("wide"));
    CHECK(d.blockers[0].obstacle == Obstacle::gpu);
    CHECK(d.text.find("task 'wide' fits nowhere else (gpu on ") != std::string::npos);
    const auto e = about("e");
    CHECK(e.fate == NodeFate::has_stuck);
    CHECK(e.blockers.at(0).obstacle == Obstacle::gpu_model);
    REQUIRE_THROWS_MESSAGE(con::explain(cluster, plan, make_id<NodeId>(5)), InvalidInput,
                           "there is no node 5");
}

TEST_CASE("tasks that the plan moves onto a node are no reason to stay") {
    // Either node could take the other's task, so one is vacated and the other receives.
    const ClusterSpec spec{.nodes = {node("a"), node("b"), node("c")},
                           .tasks = {task("x", "a", {0}), task("y", "b", {0, 1}), task("l", "c", {0}, true)}};
    const auto cluster = Cluster::build(spec);
    const auto x = cluster.find_task("x");
    const auto a = cluster.find_node("a"), b = cluster.find_node("b");
    Plan plan;
    plan.waves = 1;
    plan.moves = {{x, a, b, gpu_bit(2), 0}};
    plan.vacated_nodes = {a};
    const auto why = con::explain(cluster, plan, b);
    CHECK(why.fate == NodeFate::receives);
    CHECK(why.blockers.empty());
    CHECK(why.received == std::vector{x});
    CHECK(why.text == "node 'b' stays occupied: the plan moves 1 task onto it");
    CHECK(con::explain(cluster, Plan{}, b).fate == NodeFate::not_worthwhile);
}

TEST_CASE("explain knows the options") {
    ClusterSpec spec{.nodes = {node("a"), node("b")},
                     .tasks = {task("x", "a", {0}), task("l", "b", {0}, true)}};
    const auto cluster = Cluster::build(spec);
    const auto a = cluster.find_node("a");
    const con::Options options{.exempt = {a}};
    const auto plan = con::consolidate(cluster, options).plan;
    CHECK(con::explain(cluster, plan, a, options).blockers.at(0).fixed_by == con::FixedBy::exempt_node);
    CHECK(con::explain(cluster, plan, a, {.max_disrupted = 0}).blockers.at(0).fixed_by ==
          con::FixedBy::no_disruption);
    CHECK(con::explain(cluster, Plan{}, a).fate == NodeFate::not_worthwhile);
}

TEST_CASE("the value report weighs cost against gain") {
    auto spec = figure_15();
    for (auto& n : spec.nodes) n.network = {"core", n.name == "node-0" ? "rack-0" : "rack-1"};
    for (auto& t : spec.tasks) t.move_cost = 5;
    spec.tasks[0].job = spec.tasks[2].job = "train";
    const auto cluster = Cluster::build(spec);
    const auto report = con::value_report(cluster, con::consolidate(cluster).plan);
    CHECK(report.moved_tasks == 3);
    CHECK(report.moves == 3);
    CHECK(report.move_cost == 15);
    CHECK(report.disturbed_jobs == 2);
    CHECK(report.waves == 3);
    CHECK(report.most_moves_at_once == 1);
    CHECK(report.vacated_nodes == 1);
    CHECK(report.vacated_gpus == 4);
    CHECK(report.vacated_domains == 1);
    CHECK(report.vacated_gpus_per_move() == Catch::Approx(4.0 / 3));
    REQUIRE(report.models.size() == 1);
    CHECK(report.models[0] == con::ModelValue{"H20", 1, 4, 3});
    CHECK(con::to_text(report).find("frees 1 nodes, 4 GPUs, 1 network domains") == 0);
    CHECK(con::value_report(cluster, Plan{}).models.empty());
    CHECK(con::plan_statistics(cluster, Plan{}).moves == 0);
    CHECK(con::plan_statistics(cluster, Plan{}).vacated_nodes_per_move() == 0);
}
