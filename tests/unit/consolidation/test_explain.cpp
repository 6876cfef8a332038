// SPDX-License-Identifier: Apache-2.0
#include "example_clusters.hpp"

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
    CHECK_THAT(b.text, Mentions("task 'l' must stay locked"));
    const auto d = about("d");
    CHECK(d.fate == NodeFate::has_stuck);
    REQUIRE(d.blockers.size() == 1);
    CHECK(d.blockers[0].task == cluster.find_task("wide"));
    CHECK(d.blockers[0].obstacle == Obstacle::gpu);
    CHECK_THAT(d.text, Mentions("task 'wide' fits nowhere else too few idle GPUs on"));
    const auto e = about("e");
    CHECK(e.fate == NodeFate::has_stuck);
    CHECK(e.blockers.at(0).obstacle == Obstacle::gpu_model);
    REQUIRE_THROWS_MESSAGE(con::explain(cluster, plan, make_id<NodeId>(5)), InvalidInput,
                           "no node 5 expected less 5");
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
    CHECK_THAT(why.text, Mentions("node 'b' stays occupied plan moves 1 task onto it"));
    CHECK(con::explain(cluster, Plan{}, b).fate == NodeFate::not_worthwhile);
}

TEST_CASE("a node can be too costly at the price") {
    // Three tasks for four GPUs.
    const ClusterSpec spec{
        .nodes = {node("a", 4), node("b")},
        .tasks = {task("x", "a", {0}), task("y", "a", {1}), task("z", "a", {2}), task("l", "b", {0}, true)}};
    const auto cluster = Cluster::build(spec);
    const auto a = cluster.find_node("a");
    const auto fate = [&](std::int64_t price, con::Objective objective) {
        return con::explain(cluster, Plan{}, a, {.price = price, .objective = objective}).fate;
    };
    CHECK(fate(1333, con::Objective::gpus) == NodeFate::not_worthwhile);
    CHECK(fate(1334, con::Objective::gpus) == NodeFate::too_costly);
    CHECK(fate(333, con::Objective::nodes) == NodeFate::not_worthwhile);
    CHECK(fate(334, con::Objective::nodes) == NodeFate::too_costly);
    CHECK_THAT(con::explain(cluster, Plan{}, a, {.price = 1334}).text,
               Mentions("node 'a' stays occupied price of 1334 moves cost 3 more weight 4 GPUs"));
}

TEST_CASE("explain knows the options") {
    ClusterSpec spec{.nodes = {node("a"), node("b")},
                     .tasks = {task("x", "a", {0}), task("l", "b", {0}, true)}};
    const auto cluster = Cluster::build(spec);
    const auto a = cluster.find_node("a");
    const con::Options options{.exempt = {a}};
    const auto plan = con::consolidate(cluster, options).plan;
    CHECK(con::explain(cluster, plan, a, options).blockers.at(0).fixed_by == con::FixedBy::exempt_node);
    CHECK(con::explain(cluster, plan, a, {.limits = {.max_disrupted = 0}}).blockers.at(0).fixed_by ==
          con::FixedBy::no_disruption);
    CHECK(con::explain(cluster, Plan{}, a).fate == NodeFate::not_worthwhile);
}

TEST_CASE("explain names the least that would have to change") {
    // "wide" needs four GPUs: "b" has three idle ones, "c" one and one that failed; "d" was empty, "e" is cordoned.
    ClusterSpec spec{
        .nodes = {node("a"), node("b", 4), node("c", 4), node("d"), node("e"), node("f", 8, "other")},
        .tasks = {task("wide", "a", {0, 1, 2, 3}), task("x", "b", {0}, true), task("y", "c", {0, 1}, true),
                  task("z", "e", {0}, true), task("o", "f", {0}, true)}};
    spec.nodes[2].failed_gpus = {2};
    spec.nodes[4].schedulable = false;
    spec.tasks[0].gpu_models = {"H20"};
    const auto about = [&] {
        const auto cluster = Cluster::build(spec);
        return con::explain(cluster, Plan{}, cluster.find_node("a"));
    };
    auto why = about();
    REQUIRE(why.blockers.size() == 1);
    auto change = why.blockers[0].change;
    CHECK(change.node == make_id<NodeId>(1));
    CHECK(change.gpu_milli == 1000);
    CHECK(change.cpu_milli == 0);
    CHECK(change.closed_node == make_id<NodeId>(3));
    CHECK(change.closed_by == con::ClosedBy::empty);
    CHECK_THAT(why.text, Mentions("nearest node 'b' lacks 1 idle GPU; would fit node 'd' empty before"));

    // With cores and memory missing as well, and the cordoned node as the only one that would take it.
    spec.nodes[3].gpu_model = "other";
    spec.tasks[0].cpu_milli = 64'500;
    spec.tasks[0].memory_mib = 400'000;
    why = about();
    change = why.blockers.at(0).change;
    CHECK(change.node == make_id<NodeId>(1));
    CHECK(change.cpu_milli == 1500);
    CHECK(change.memory_mib == 1000);
    CHECK(change.closed_node == make_id<NodeId>(4));
    CHECK(change.closed_by == con::ClosedBy::cordoned);
    CHECK_THAT(why.text,
               Mentions("lacks 1 idle GPU, 1.5 cores 1000 MiB of memory; would fit node 'e' cordoned"));

    // Nothing of its kind is open or closed.
    spec.tasks[0].gpu_models = {"H20"};
    for (std::size_t n = 1; n < spec.nodes.size(); ++n) spec.nodes[n].gpu_model = "other";
    why = about();
    CHECK(why.blockers.at(0).change.node == none<NodeId>);
    CHECK_THAT(why.text, Mentions("task 'wide' it accepts no other node"));
}

TEST_CASE("if no resource is lacking, the constraint in the way is named") {
    ClusterSpec spec{.nodes = {node("a"), node("b")},
                     .tasks = {task("x", "a", {0}), task("y", "b", {0}, true)}};
    for (auto& t : spec.tasks) t.anti_affinity.push_back({"apart", node_level, 1});
    const auto cluster = Cluster::build(spec);
    const auto why = con::explain(cluster, Plan{}, cluster.find_node("a"));
    REQUIRE(why.blockers.size() == 1);
    CHECK(why.blockers[0].change.obstacle == Obstacle::anti_affinity);
    CHECK_THAT(why.text, Mentions("nearest node 'b', prevented only by anti-affinity"));
}

TEST_CASE("tasks that fit elsewhere alone but not together are reported as crowded") {
    const ClusterSpec spec{
        .nodes = {node("a"), node("b", 4)},
        .tasks = {task("two", "a", {0, 1}), task("one", "a", {2}), task("l", "b", {0, 1}, true)}};
    const auto cluster = Cluster::build(spec);
    const auto why = con::explain(cluster, Plan{}, cluster.find_node("a"));
    CHECK(why.fate == NodeFate::crowded);
    REQUIRE(why.blockers.size() == 1);
    CHECK(why.blockers[0].task == cluster.find_task("one"));
    CHECK_THAT(why.text,
               Mentions("node 'a' stays occupied each alone, not all together: task 'one' then fits nowhere "
                        "(too few idle GPUs on 1 of 1 nearest node 'b', lacks 1 idle GPU"));
}

TEST_CASE("every node that could not be cleared is explained") {
    const ClusterSpec spec{.nodes = {node("a"), node("b"), node("c")},
                           .tasks = {task("x", "a", {0}), task("l", "b", {0}, true), task("y", "c", {0})}};
    const auto cluster = Cluster::build(spec);
    const auto a = cluster.find_node("a"), b = cluster.find_node("b");
    con::Options options{.preset = con::Preset::fast};
    REQUIRE_THROWS_MESSAGE(con::explain_clear(cluster, Plan{}, options), InvalidInput, "clear: absent");
    options.clear = {b, a};
    const auto plan = con::consolidate(cluster, options).plan;
    const auto left = con::explain_clear(cluster, plan, options);
    REQUIRE(left.size() == 1);
    CHECK(left[0].node == b);
    CHECK(left[0].fate == NodeFate::has_fixed);
    const auto before = con::explain_clear(cluster, Plan{}, options);
    REQUIRE(before.size() == 2);
    CHECK(before[0].node == a);
    CHECK(before[0].fate == NodeFate::not_worthwhile);
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
    CHECK_THAT(con::to_text(report), Mentions("frees 1 node, 4 GPUs, 1 network domain"));
    CHECK(con::value_report(cluster, Plan{}).models.empty());
    CHECK(con::plan_statistics(cluster, Plan{}).moves == 0);
    CHECK(con::plan_statistics(cluster, Plan{}).vacated_nodes_per_move() == 0);
}

TEST_CASE("everything that a task lacks is listed") {
    // On b one GPU is missing, and a task there avoids x; on c two GPUs are missing, and nothing else.
    ClusterSpec spec{
        .nodes = {node("a", 4), node("b", 4), node("c", 4)},
        .tasks = {task("x", "a", {0, 1, 2}), task("y", "b", {0, 1}, true), task("z", "c", {0, 1, 2}, true)}};
    spec.tasks[0].groups = {"g"};
    spec.tasks[1].avoid = {{"g", node_level}};
    auto cluster = Cluster::build(spec);
    auto why = con::explain(cluster, Plan{}, cluster.find_node("a"));
    REQUIRE(why.fate == con::NodeFate::has_stuck);
    CHECK(why.blockers.at(0).change.node == cluster.find_node("c"));
    CHECK(why.blockers[0].change.gpu_milli == 2000);
    CHECK(why.blockers[0].change.obstacle == Obstacle::none);
    spec.nodes.pop_back();
    spec.tasks.pop_back();
    cluster = Cluster::build(spec);
    why = con::explain(cluster, Plan{}, cluster.find_node("a"));
    CHECK(why.blockers.at(0).change.gpu_milli == 1000);
    CHECK(why.blockers[0].change.obstacle == Obstacle::avoid);
    CHECK_THAT(why.text, Mentions("lacks 1 idle GPU, prevented by pod anti-affinity"));
}

TEST_CASE("lent GPUs are not lacking for tasks that may borrow them") {
    ClusterSpec spec{
        .nodes = {node("a", 4), node("b", 4)},
        .tasks = {task("x", "a", {0, 1, 2}), task("s", "b", {0, 1}), task("l", "b", {2, 3}, true)}};
    spec.tasks[1].standby = true;
    spec.tasks[1].priority_class = PriorityClass::hp;
    for (const bool borrows : {false, true}) {
        spec.tasks[0].priority_class = borrows ? PriorityClass::lp : PriorityClass::other;
        const auto cluster = Cluster::build(spec);
        const auto why = con::explain(cluster, Plan{}, cluster.find_node("a"));
        CHECK(why.blockers.at(0).change.gpu_milli == (borrows ? 1000 : 3000));
    }
}
