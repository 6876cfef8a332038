// SPDX-License-Identifier: Apache-2.0
#include "example_clusters.hpp"
#include "support/catch.hpp"

#include <gpusched/consolidation/explain_move.hpp>

using namespace testing_support;
using con::MoveFate;

TEST_CASE("explain_move says what is in the way of a move, and what it would change") {
    // x may go to b once y has left it; e is empty; l is locked.
    ClusterSpec spec{.nodes = {node("a"), node("b", 2), node("c"), node("e"), node("f", 8, "other")},
                     .tasks = {task("x", "a", {0, 1}), task("y", "b", {0}), task("l", "c", {0}, true),
                               task("z", "f", {0})}};
    spec.tasks[0].gpu_models = {"H20"};
    spec.tasks[0].move_cost = 3;
    const auto cluster = Cluster::build(spec);
    const auto ask = [&](const char* task, const char* node, const con::Options& options = {}) {
        return con::explain_move(cluster, Plan{}, cluster.find_task(task), cluster.find_node(node), options);
    };

    const auto there = ask("x", "c", {.price = 500});
    CHECK(there.fate == MoveFate::possible);
    CHECK(there.cost == 3);
    CHECK(there.weight == 8);  // a is vacated
    CHECK(there.value_milli == 8000 - 1500);
    CHECK(there.text == "task 'x' could move to node 'c'; the move adds 8 to the weight and 3 to the cost, "
                        "6500 thousandths to the value at the price of 500");
    const auto crowded = ask("x", "b");
    CHECK(crowded.fate == MoveFate::obstacle);
    CHECK(crowded.obstacle == Obstacle::gpu);
    CHECK(crowded.victims == std::vector{cluster.find_task("y")});
    CHECK(crowded.text.find("unless these leave it: task 'y'") != std::string::npos);
    const auto alien = ask("x", "f");
    CHECK(alien.obstacle == Obstacle::gpu_model);
    CHECK(alien.victims.empty());
    CHECK(ask("x", "a").fate == MoveFate::is_there);
    const auto locked = ask("l", "a");
    CHECK(locked.fate == MoveFate::task_stays);
    CHECK(locked.fixed_by == con::FixedBy::locked);
    const auto opened = ask("x", "e");
    CHECK(opened.fate == MoveFate::node_closed);
    CHECK(opened.closed_by == con::ClosedBy::empty);
    CHECK(opened.weight == 0);  // one is vacated, one opened
    CHECK(ask("x", "c", {.exempt = {cluster.find_node("c")}}).closed_by == con::ClosedBy::exempt);
    CHECK(ask("x", "c", {.clear = std::vector{cluster.find_node("c")}}).closed_by == con::ClosedBy::to_clear);
    REQUIRE_THROWS_MESSAGE(con::explain_move(cluster, Plan{}, make_id<TaskId>(9), make_id<NodeId>(9)),
                           InvalidInput, "there is no task 9");
}

TEST_CASE("explain_move looks at the cluster as the plan leaves it") {
    const ClusterSpec spec{.nodes = {node("a"), node("b"), node("c")},
                           .tasks = {task("x", "a", {0}), task("y", "b", {0, 1}), task("l", "c", {0}, true)}};
    const auto cluster = Cluster::build(spec);
    const auto x = cluster.find_task("x");
    const auto a = cluster.find_node("a"), b = cluster.find_node("b"), c = cluster.find_node("c");
    Plan plan;
    plan.waves = 1;
    plan.moves = {{x, a, b, gpu_bit(2), 0}};
    plan.vacated_nodes = {a};
    CHECK(con::explain_move(cluster, plan, x, b).fate == MoveFate::is_there);
    const auto back = con::explain_move(cluster, plan, x, a);
    CHECK(back.fate == MoveFate::node_closed);
    CHECK(back.closed_by == con::ClosedBy::emptied);
    CHECK(back.cost == -1);
    CHECK(back.weight == -8);
    const auto on = con::explain_move(cluster, plan, x, c);
    CHECK(on.fate == MoveFate::possible);
    CHECK(on.cost == 0);  // it has moved already
    CHECK(on.weight == 0);
}
