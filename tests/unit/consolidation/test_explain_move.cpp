// SPDX-License-Identifier: Apache-2.0
#include "example_clusters.hpp"

#include <functional>

using namespace testing_support;
using con::MoveFate;

TEST_CASE("explain_move names the obstacle of a move and its effect") {
    // x may go to b once y has left it; e is empty; l is locked.
    ClusterSpec spec{.nodes = {node("a"), node("b", 2), node("c"), node("e"), node("f", 8, "other")},
                     .tasks = {task("x", "a", {0, 1}), task("y", "b", {0}), task("l", "c", {0}, true),
                               task("z", "f", {0})}};
    spec.tasks[0].gpu_models = {"H20"};
    spec.tasks[0].move_cost = 3;
    const auto cluster = Cluster::build(spec);
    const auto ask = [&](const char* task, const char* node, const con::Options& options = {}) {
        return con::explain_move(cluster, cluster.find_task(task), cluster.find_node(node), options);
    };

    const auto there = ask("x", "c", {.price = 500});
    CHECK(there.fate == MoveFate::possible);
    CHECK(there.cost == 3);
    CHECK(there.weight == 8);  // a is vacated
    CHECK(there.value_milli == 8000 - 1500);
    CHECK_THAT(there.text, Mentions("task 'x' could move node 'c'; the move alone frees node 'a'"));
    CHECK_THAT(ask("x", "c", {.price = 5000}).text, Mentions("frees node 'a', which is not worth its price"));
    const auto crowded = ask("x", "b");
    CHECK(crowded.fate == MoveFate::obstacle);
    CHECK(crowded.obstacle == Obstacle::gpu);
    CHECK(crowded.victims == std::vector{cluster.find_task("y")});
    CHECK_THAT(crowded.text,
               Mentions("task 'x' cannot move node 'b' (too few idle GPUs) unless leave task 'y'"));
    const auto alien = ask("x", "f");
    CHECK(alien.obstacle == Obstacle::gpu_model);
    CHECK(alien.victims.empty());
    CHECK(ask("x", "a").fate == MoveFate::is_there);
    CHECK_THAT(ask("x", "a").text, Mentions("task 'x' is on node 'a' already"));
    const auto locked = ask("l", "a");
    CHECK(locked.fate == MoveFate::task_stays);
    CHECK(locked.fixed_by == con::FixedBy::locked);
    const auto opened = ask("x", "e");
    CHECK(opened.fate == MoveFate::node_closed);
    CHECK(opened.closed_by == con::ClosedBy::empty);
    CHECK(opened.weight == 0);  // one is vacated, one opened
    CHECK_THAT(opened.text, Mentions("frees no more than it fills"));
    CHECK(ask("x", "c", {.exempt = {cluster.find_node("c")}}).closed_by == con::ClosedBy::exempt);
    CHECK(ask("x", "c", {.clear = std::vector{cluster.find_node("c")}}).closed_by == con::ClosedBy::to_clear);
    REQUIRE_THROWS_MESSAGE(con::explain_move(cluster, make_id<TaskId>(9), make_id<NodeId>(9)), InvalidInput,
                           "no task 9");
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
    CHECK(con::explain_move(cluster, x, b, {}, plan).fate == MoveFate::is_there);
    const auto back = con::explain_move(cluster, x, a, {}, plan);
    CHECK(back.fate == MoveFate::node_closed);
    CHECK(back.closed_by == con::ClosedBy::emptied);
    CHECK(back.cost == -1);
    CHECK(back.weight == -8);
    const auto on = con::explain_move(cluster, x, c, {}, plan);
    CHECK(on.fate == MoveFate::possible);
    CHECK(on.cost == 0);  // it has moved already
    CHECK(on.weight == 0);
}

TEST_CASE("an empty node counts as opened, even if it is closed") {
    ClusterSpec spec{.nodes = {node("a"), node("b"), node("c")},
                     .tasks = {task("x", "a", {0}), task("y", "b", {0, 1}), task("l", "b", {2}, true)}};
    spec.nodes[2].schedulable = false;
    const auto cluster = Cluster::build(spec);
    const auto x = cluster.find_task("x"), y = cluster.find_task("y");
    const auto a = cluster.find_node("a"), b = cluster.find_node("b"), c = cluster.find_node("c");
    Plan plan;
    plan.waves = 1;
    plan.moves = {{x, a, b, gpu_bit(3), 0}};
    plan.vacated_nodes = {a};
    const auto cleared = con::explain_move(cluster, y, a, {.clear = std::vector{a}}, plan);
    CHECK(cleared.closed_by == con::ClosedBy::to_clear);
    CHECK(cleared.weight == -8);
    CHECK(con::explain_move(cluster, y, a, {.exempt = {a}}, plan).weight == -8);
    const auto cordoned = con::explain_move(cluster, y, c, {}, plan);
    CHECK(cordoned.closed_by == con::ClosedBy::cordoned);
    CHECK(cordoned.weight == -8);
}

TEST_CASE("a closed node is called what it is") {
    struct Case {
        std::vector<Taint> taints;
        std::string owner_kind;
        con::ClosedBy by;
        const char* words;
    };
    for (const auto& c : {Case{{}, "Job", con::ClosedBy::cordoned, "cordoned"},
                          Case{{}, "Slurm job", con::ClosedBy::cordoned, "drained"},
                          Case{{{"node.kubernetes.io/not-ready", "", "NoSchedule"}},
                               "Job",
                               con::ClosedBy::not_ready,
                               "not ready"},
                          Case{{{"node.kubernetes.io/unreachable", "", "NoExecute"}},
                               "Slurm job",
                               con::ClosedBy::not_ready,
                               "not ready"}}) {
        INFO(c.words);
        ClusterSpec spec{.nodes = {node("a"), node("b"), node("c")},
                         .tasks = {task("x", "a", {0, 1}), task("y", "b", {0, 1, 2, 3, 4, 5, 6})}};
        for (auto& one : spec.tasks) one.owner_kind = c.owner_kind;
        spec.nodes[2].schedulable = false;
        spec.nodes[2].taints = c.taints;
        const auto cluster = Cluster::build(spec);
        const auto x = cluster.find_task("x");
        const auto to_closed = con::explain_move(cluster, x, cluster.find_node("c"));
        CHECK(to_closed.closed_by == c.by);
        CHECK_THAT(to_closed.text, Mentions("receives nothing (" + std::string(c.words) + ")"));
        CHECK_THAT(con::explain(cluster, {}, cluster.find_node("b")).text,
                   !Mentions("cordoned") || Mentions(c.words));
    }
}

TEST_CASE("explain_move names what never changes before the state of the node") {
    struct Case {
        const char* words;
        std::function<void(TaskSpec&, NodeSpec&)> change;  // of the task and the node in question
        Obstacle obstacle;
    };
    for (const auto& [words, change, obstacle] : {
             Case{"GPU model", [](TaskSpec& t, NodeSpec&) { t.gpu_models = {"H20"}; }, Obstacle::gpu_model},
             Case{"node selector",
                  [](TaskSpec& t, NodeSpec&) {
                      t.node_selector = {{"pool", "a"}};
                  },
                  Obstacle::node_selector},
             Case{"taint",
                  [](TaskSpec&, NodeSpec& n) {
                      n.taints = {{"team", "", "NoSchedule"}};
                  },
                  Obstacle::taint},
             Case{"volume out of reach",
                  [](TaskSpec& t, NodeSpec&) {
                      t.resources = {{"volumes like v", 1}};
                  },
                  Obstacle::resource},
         }) {
        INFO(words);
        ClusterSpec spec{.nodes = {node("a"), node("b")}, .tasks = {task("x", "a", {0})}};
        spec.nodes[0].gpu_model = "H20";
        spec.nodes[0].labels = {{"pool", "a"}};
        spec.nodes[0].resources = {{"volumes like v", 1}};
        spec.nodes[1].gpu_model = "other";
        spec.nodes[1].schedulable = false;
        for (const bool changed : {false, true}) {
            if (changed) change(spec.tasks[0], spec.nodes[1]);
            auto third = node("c");  // otherwise the task is bound to its node
            third.gpu_model = "H20";
            third.labels = {{"pool", "a"}};
            third.resources = {{"volumes like v", 1}};
            auto with = spec;
            with.nodes.push_back(third);
            const auto cluster = Cluster::build(with);
            const auto x = cluster.find_task("x");
            const auto b = cluster.find_node("b");
            const auto move = con::explain_move(cluster, x, b);
            CHECK(move.closed_by == con::ClosedBy::cordoned);
            CHECK(move.fate == (changed ? MoveFate::obstacle : MoveFate::node_closed));
            if (!changed) continue;
            CHECK(move.obstacle == obstacle);
            CHECK_THAT(move.text, Mentions("(" + std::string(words) + "; the node is also cordoned)"));
            CHECK_THAT(describe_obstacle(cluster, x, b), !Mentions("cordoned"));
        }
    }
}

TEST_CASE("a task on other GPUs of its first node has moved") {
    const ClusterSpec spec{.nodes = {node("a"), node("b"), node("c")},
                           .tasks = {task("x", "a", {0}), task("k", "a", {1}), task("y", "b", {0}),
                                     task("z", "b", {1}), task("l", "c", {0})}};
    const auto cluster = Cluster::build(spec);
    const auto x = cluster.find_task("x"), y = cluster.find_task("y");
    const auto a = cluster.find_node("a"), b = cluster.find_node("b"), c = cluster.find_node("c");
    Plan plan;
    plan.waves = 2;
    plan.moves = {{x, a, c, gpu_bit(1), 0}, {y, b, a, gpu_bit(0), 1}};
    const auto back = con::explain_move(cluster, x, a, {}, plan);
    CHECK(back.fate == MoveFate::possible);
    CHECK(back.cost == 0);
    plan.moves[1].gpus = gpu_bit(2);
    CHECK(con::explain_move(cluster, x, a, {}, plan).cost == -1);
}

TEST_CASE("victims are those without which every constraint holds") {
    // b is full of y and z, of which y avoids x.
    ClusterSpec spec{.nodes = {node("a"), node("b", 4)},
                     .tasks = {task("x", "a", {0, 1}), task("y", "b", {0}), task("z", "b", {1}),
                               task("l", "b", {2, 3}, true)}};
    spec.tasks[0].groups = {"g"};
    spec.tasks[1].avoid = {{"g", node_level}};
    const auto ask = [](const ClusterSpec& of) {
        const auto cluster = Cluster::build(of);
        const auto e = con::explain_move(cluster, cluster.find_task("x"), cluster.find_node("b"));
        std::vector<std::string> names;
        for (const auto victim : e.victims) names.push_back(cluster.name(victim));
        return std::pair(e.obstacle, names);
    };
    CHECK(ask(spec) == std::pair(Obstacle::gpu, std::vector<std::string>{"y", "z"}));

    // An LP task on a lent GPU: without it only LP tasks could have the GPU.
    spec.tasks[1].avoid.clear();
    spec.tasks[1].priority_class = PriorityClass::lp;
    spec.tasks[3].locked = false;
    spec.tasks[3].standby = true;
    spec.tasks[3].priority_class = PriorityClass::hp;
    spec.tasks[3].gpus = {0, 3};
    spec.tasks.push_back(task("k", "b", {2}, true));
    CHECK(ask(spec) == std::pair(Obstacle::gpu, std::vector<std::string>{}));
}
