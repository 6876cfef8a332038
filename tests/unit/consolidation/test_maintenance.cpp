// SPDX-License-Identifier: Apache-2.0
// Blockers, drain orders and what-if on snapshots that can be checked by hand.
#include "example_clusters.hpp"

using namespace testing_support;

namespace {

/// Four nodes with two tasks of two GPUs each, so that half of all GPUs are idle.
ClusterSpec half_full() {
    ClusterSpec spec;
    for (const std::string name : {"a", "b", "c", "d"}) {
        spec.nodes.push_back(node(name));
        spec.tasks.push_back(task(name + "1", name, {0, 1}));
        spec.tasks.push_back(task(name + "2", name, {2, 3}));
    }
    return spec;
}

std::vector<std::vector<std::string>> names(const Cluster& cluster, const con::DrainOrder& order) {
    std::vector<std::vector<std::string>> all;
    for (const auto& batch : order.batches) {
        auto& nodes = all.emplace_back();
        for (const auto node : batch.nodes) nodes.push_back(cluster.name(node));
    }
    return all;
}

TaskSpec pending(std::string name, std::int64_t gpus, std::string job = "") {
    TaskSpec t{.name = std::move(name), .job = std::move(job)};
    t.gpu_count = gpus;
    t.cpu_milli = 1000 * gpus;
    t.memory_mib = 1000 * gpus;
    return t;
}

std::vector<std::string> starting(const con::WhatIf& answer, std::size_t state) {
    std::vector<std::string> found;
    for (const auto& job : answer.jobs)
        if (job.outcomes.at(state).starts) found.push_back(job.name);
    return found;
}

}  // namespace

TEST_CASE("drain_order: half of a half-full cluster is down at once, and no pod moves twice") {
    const auto cluster = Cluster::build(half_full());
    const auto order = con::drain_order(cluster, {.batch = 2, .threads = 1});
    CHECK(order.left.empty());
    CHECK(order.batches.size() == 2);
    CHECK(order.batches_at_least == 2);
    // Two nodes move onto the others; these move back in the second batch with the pods that came.
    CHECK(order.moved_tasks == 8);
    CHECK(order.moved_twice == 4);
    CHECK(order.jobs_restarted_twice == 0);  // these pods have no job
    const auto three = con::drain_order(cluster, {.batch = 3, .threads = 1});
    CHECK(three.batches.size() == 2);  // two nodes hold all tasks, one does not
}

TEST_CASE("drain_order: drained nodes return and receive") {
    auto spec = half_full();
    spec.nodes.push_back(node("e"));
    const auto cluster = Cluster::build(spec);
    const auto order = con::drain_order(cluster, {.batch = 1, .threads = 1});
    CHECK(order.left.empty());
    CHECK(names(cluster, order).size() == 5);
    CHECK(order.batches_at_least == 5);
    const auto given =
        con::drain_order(cluster, {.batch = 1, .nodes = {{cluster.find_node("b"), cluster.find_node("a")}}});
    CHECK(given.batches.size() == 2);
    CHECK(given.moved_tasks == 4);
    CHECK(given.moved_twice == 0);
}

TEST_CASE("drain_order: jobs that restart in more than one batch are named") {
    auto spec = half_full();
    // A pod of the job "gang" runs on a and one on b; both pods of "here" run on c.
    spec.tasks[0].job = spec.tasks[2].job = "gang";
    spec.tasks[4].job = spec.tasks[5].job = "here";
    spec.tasks[1].job = spec.tasks[3].job = "copied";
    for (const auto t : {0u, 2u, 4u, 5u}) spec.tasks[t].how = Mobility::restart;
    spec.nodes.push_back(node("spare"));  // all pods of a batch fit here
    const auto cluster = Cluster::build(spec);
    const auto drained = [&](std::vector<const char*> nodes) {
        std::vector<NodeId> ids;
        for (const auto* name : nodes) ids.push_back(cluster.find_node(name));
        return con::drain_order(cluster, {.batch = 1, .nodes = ids, .threads = 1});
    };
    const auto apart = drained({"a", "b", "c"});
    REQUIRE(apart.batches.size() == 3);
    CHECK(apart.jobs_restarted_twice == 1);
    std::vector<std::string> again;
    for (const auto& batch : apart.batches)
        for (const auto job : batch.restarted_again)
            again.push_back(cluster.inventory().job_names[index(job)]);
    CHECK(std::count(again.begin(), again.end(), "gang") == 1);
    CHECK(drained({"a", "c"}).jobs_restarted_twice == 0);
}

TEST_CASE("drain_order: nodes of one GPU model") {
    auto spec = half_full();
    for (const auto n : {0u, 1u}) spec.nodes[n].gpu_model = "NVIDIA-H100-80GB-HBM3";  // a, b
    const auto cluster = Cluster::build(spec);
    using Names = std::vector<std::vector<std::string>>;
    const auto a_and_c = std::vector{cluster.find_node("a"), cluster.find_node("c")};
    CHECK(names(cluster, con::drain_order(cluster, {.batch = 4, .gpu_model = "h100"})) == Names{{"a", "b"}});
    CHECK(names(cluster, con::drain_order(cluster, {.nodes = a_and_c, .gpu_model = "H20"})) == Names{{"c"}});
    CHECK_THROWS_AS(con::drain_order(cluster, {.gpu_model = "B200"}), InvalidInput);
}

TEST_CASE("drain_order: nodes that cannot be drained are named with their blocker") {
    auto spec = half_full();
    spec.tasks[0].locked = true;            // a1
    spec.tasks[2].how = Mobility::none;     // b1
    spec.tasks[4].how = Mobility::restart;  // c1
    spec.tasks[6].gpu_models = {"H20"};     // d1
    spec.budgets = {{.name = "web", .tasks = {"c1"}, .allowed_down = 0}};
    const auto cluster = Cluster::build(spec);
    const auto order = con::drain_order(cluster, {.batch = 4});
    REQUIRE(order.left.size() == 3);
    CHECK(names(cluster, order) == std::vector<std::vector<std::string>>{{"d"}});
    CHECK(order.left[0].text.find("task 'a1' must stay (locked)") != std::string::npos);
    CHECK(order.left[1].blockers.at(0).fixed_by == con::FixedBy::never_moves);
    CHECK_THAT(order.left[1].text, Mentions("'b1' must stay safe-to-evict"));
    CHECK_THAT(order.left[2].text, Mentions("c1 must stay 'web'"));
    CHECK(order.left[2].blockers.at(0).fixed_by == con::FixedBy::budget);
    spec.budgets.push_back({.name = "all", .tasks = {"c1", "c2"}, .allowed_down = 0});
    const auto two = con::drain_order(Cluster::build(spec), {.batch = 4});
    CHECK_THAT(two.left.at(2).text, Mentions("c1 must stay 'web'"));
    CHECK_THAT(two.left.at(2).text, Mentions("c1 must stay 'all'"));
    // What has no other place keeps the node occupied as well.
    spec.nodes[0].labels = {{"disk", "a"}};
    spec.tasks[1].node_selector = {{"disk", "a"}};  // a2
    const auto both = con::drain_order(Cluster::build(spec), {.batch = 4});
    REQUIRE(both.left.at(0).blockers.size() == 2);
    CHECK(both.left.at(0).blockers[0].fixed_by == con::FixedBy::locked);
    CHECK(both.left.at(0).blockers[1].fixed_by == con::FixedBy::none);
}

TEST_CASE("drain_order: a full cluster has no batch, and the bound is 0") {
    ClusterSpec spec;
    for (const std::string name : {"a", "b"}) {
        spec.nodes.push_back(node(name, 2));
        spec.tasks.push_back(task(name + "1", name, {0, 1}));
    }
    const auto order = con::drain_order(Cluster::build(spec), {});
    CHECK(order.batches.empty());
    CHECK(order.batches_at_least == 0);
    REQUIRE(order.left.size() == 2);
    CHECK(order.left[0].blockers.at(0).obstacle == Obstacle::gpu);
    CHECK(con::drain_order(Cluster(), {}).batches.empty());
}

TEST_CASE("drain_order: a node that an earlier batch would fill is drained before it") {
    // If the tasks of the cordoned node go to b, then b cannot be emptied any more.
    ClusterSpec spec;
    spec.nodes = {node("a", 2), node("b", 3), node("c", 2)};
    spec.nodes[0].schedulable = false;
    spec.tasks = {task("a1", "a", {0, 1}), task("b1", "b", {0})};
    for (const std::int64_t batch : {1, 2, 3})
        CHECK(con::drain_order(Cluster::build(spec), {.batch = batch}).left.empty());
}

TEST_CASE("drain_order: bad options, limits and cancellation") {
    const auto cluster = Cluster::build(half_full());
    const auto a = cluster.find_node("a");
    CHECK_THROWS_AS(con::drain_order(cluster, {.batch = 0}), InvalidInput);
    CHECK_THROWS_AS(con::drain_order(cluster, {.tries = 0}), InvalidInput);
    CHECK_THROWS_AS(con::drain_order(cluster, {.nodes = {{make_id<NodeId>(9)}}}), InvalidInput);
    CHECK_THROWS_AS(con::drain_order(cluster, {.nodes = {{a}}, .exempt = {a}}), InvalidInput);
    CHECK_THROWS_AS(con::drain_batches_at_least(cluster, {a}, 0), InvalidInput);
    std::stop_source stop;
    stop.request_stop();
    const auto order = con::drain_order(cluster, {}, {.stop = stop.get_token()});
    CHECK(order.stop_reason == StopReason::cancelled);
    CHECK(order.left.size() + order.batches.size() == 4);
    for (const auto& why : order.left) {
        CHECK_THAT(why.text, Mentions("not tried"));
        CHECK(why.blockers.empty());
    }
    const auto kept = con::drain_order(cluster, {.batch = 4, .exempt = {a}});
    CHECK(kept.left.empty());
    for (const auto& batch : kept.batches) {
        CHECK(std::count(batch.nodes.begin(), batch.nodes.end(), a) == 0);
        for (const auto& move : batch.plan.moves) CHECK((move.from != a && move.to != a));
    }
}

TEST_CASE("drain_batches_at_least counts nodes and idle capacity") {
    const auto cluster = Cluster::build(half_full());
    std::vector<NodeId> all(cluster.nodes().begin(), cluster.nodes().end());
    CHECK(con::drain_batches_at_least(cluster, all, 1) == 4);
    CHECK(con::drain_batches_at_least(cluster, all, 4) == 2);  // 16 of 32 GPUs are idle
    CHECK(con::drain_batches_at_least(cluster, {}, 4) == 0);
}

TEST_CASE("blockers: the one that frees most comes first") {
    auto spec = half_full();
    spec.nodes.push_back(node("e", 4));
    for (const auto* name : {"a1", "b1", "c1", "d1"})
        for (auto& t : spec.tasks)
            if (t.name == name) t.locked = true;
    spec.tasks[0].job = spec.tasks[2].job = "two";  // a1, b1
    spec.tasks.push_back(task("e1", "e", {0, 1, 2, 3}));
    spec.tasks.back().how = Mobility::none;
    const auto cluster = Cluster::build(spec);
    const auto found = con::blockers(cluster);
    CHECK(found.vacated_nodes == 0);
    CHECK(found.nodes_held == 5);
    CHECK(found.gpus_held == 36);
    CHECK(found.found == 4);
    REQUIRE(found.ranked.size() == 4);
    CHECK_FALSE(found.pairs);
    CHECK(found.ranked[0].blockers.at(0).name == "two");
    CHECK(found.ranked[0].blockers.at(0).kind == con::BlockerKind::locked);
    CHECK(found.ranked[0].blockers.at(0).tasks.size() == 2);
    CHECK(found.ranked[0].gpus == 16);
    CHECK(found.ranked[0].nodes == 2);
    CHECK(found.ranked[0].freed.size() == 2);
    CHECK(found.ranked[3].blockers.at(0).name == "e1");
    CHECK(found.ranked[3].gpus == 4);
    CHECK(con::blockers(cluster, {.max_plans = 2}).planned == 2);
}

TEST_CASE("blockers: nodes that take no tasks are none to free") {
    using Close = std::function<void(NodeSpec&)>;
    const std::pair<const char*, Close> cases[] = {
        {"cordoned", [](NodeSpec& n) { n.schedulable = false; }},
        {"not ready",
         [](NodeSpec& n) {
             n.schedulable = false;
             n.taints = {{"node.kubernetes.io/not-ready", "", "NoSchedule"}};
         }},
        {"unreachable",
         [](NodeSpec& n) {
             n.taints = {{"node.kubernetes.io/unreachable", "", "NoExecute"}};
         }},
    };
    for (const auto& [what, close] : cases)
        for (const auto* const model : {"", "M"}) {
            INFO(what << ", GPU model " << model);
            auto spec = half_full();
            for (auto& n : spec.nodes) n.gpu_model = "M";
            std::erase_if(spec.tasks, [](const TaskSpec& t) { return t.name == "b2" || t.name == "c2"; });
            for (auto& t : spec.tasks) t.locked = t.name == "a1" || t.name == "b1" || t.name == "c1";
            close(spec.nodes[0]);
            const auto cluster = Cluster::build(spec);
            const auto found = con::blockers(cluster, {.gpu_model = model});
            CHECK(found.nodes_held == 2);
            CHECK(found.ranked.size() == 2);
            for (const auto& ranked : found.ranked)
                for (const auto node : ranked.freed) CHECK(cluster.name(node) != "a");
        }
}

TEST_CASE("blockers: budgets at 0, and pairs if no single one helps") {
    ClusterSpec spec;
    spec.nodes = {node("a"), node("b")};
    spec.tasks = {task("a1", "a", {0, 1}), task("a2", "a", {2, 3}), task("b1", "b", {0}, true)};
    spec.tasks[0].how = spec.tasks[1].how = Mobility::restart;
    spec.budgets = {{.name = "x", .tasks = {"a1", "a2"}, .allowed_down = 0}};
    const auto one = con::blockers(Cluster::build(spec));
    REQUIRE(one.ranked.size() == 2);
    // Either node can take the other's tasks.
    CHECK(one.ranked[0].gpus == 8);
    spec.tasks[0].locked = true;
    spec.nodes[1].memory_mib = 2'000'000;  // b1 does not fit on a
    spec.tasks[2].memory_mib = 1'000'000;
    const auto two = con::blockers(Cluster::build(spec));
    CHECK(two.pairs);
    REQUIRE(two.ranked.size() == 1);
    CHECK(two.ranked[0].blockers.size() == 2);
    CHECK(two.ranked[0].blockers[0].kind == con::BlockerKind::locked);
    CHECK(two.ranked[0].blockers[1].kind == con::BlockerKind::budget);
}

TEST_CASE("blockers: if no single one helps, those that hold the most nodes are listed") {
    auto spec = half_full();
    for (const auto t : {0u, 2u, 4u, 6u}) spec.tasks[t].gpus = {0, 1, 2, 3}, spec.tasks[t].gpu_count = 4;
    for (const auto t : {1u, 3u, 5u, 7u}) spec.tasks[t].gpus = {4, 5, 6, 7}, spec.tasks[t].gpu_count = 4;
    // A job and a task with the same name are two blockers.
    spec.tasks[0].locked = spec.tasks[2].locked = spec.tasks[4].locked = true;
    spec.tasks[0].job = spec.tasks[2].job = "c1";
    const auto found = con::blockers(Cluster::build(spec));
    CHECK(found.ranked.empty());
    CHECK(found.found == 2);
    REQUIRE(found.others.size() == 2);
    CHECK(found.others[0].nodes == 2);
    CHECK(found.others[0].tasks.size() == 2);
    CHECK(found.others[1].nodes == 1);
    CHECK(con::blockers(Cluster::build(half_full())).others.empty());
}

TEST_CASE("blockers: pods with local volumes are a kind of their own") {
    struct Case {
        std::string what;
        std::function<void(TaskSpec&)> pin;
        bool is_pinned;
    };
    const auto one_of = [](std::vector<std::string> nodes) {
        return NodeTerm{{{"kubernetes.io/hostname", MatchOperator::in, std::move(nodes)}}, {}};
    };
    for (const auto& [what, pin, is_pinned] :
         {Case{"a volume", [&](TaskSpec& t) { t.node_affinity = {one_of({"a"})}; }, true},
          Case{"a volume of two nodes",
               [&](TaskSpec& t) {
                   t.node_affinity = {one_of({"a", "b"})};
               },
               false},
          Case{"a spread pod's volume",
               [](TaskSpec& t) {
                   t.resources = {{"volumes like v", 1}};
               },
               true},
          Case{"a selector",
               [](TaskSpec& t) {
                   t.node_selector = {{"kubernetes.io/hostname", "a"}};
               },
               true},
          Case{"another selector",
               [](TaskSpec& t) {
                   t.node_selector = {{"disk", "a"}};
               },
               false}}) {
        INFO(what);
        ClusterSpec spec;
        for (const std::string name : {"a", "b"}) {
            spec.nodes.push_back(node(name));
            spec.nodes.back().labels = {{"kubernetes.io/hostname", name}, {"disk", name}};
        }
        spec.nodes[0].resources = {{"volumes like v", 1}};
        spec.tasks = {task("a1", "a", {0}), task("b1", "b", {0}, true)};
        pin(spec.tasks[0]);
        const auto found = con::blockers(Cluster::build(spec));
        const auto kind = [](const con::RankedBlocker& ranked) { return ranked.blockers.at(0).kind; };
        const bool listed = std::ranges::count(found.ranked, con::BlockerKind::bound_to_node, kind) == 1;
        CHECK(listed == is_pinned);
        CHECK(found.found == (is_pinned ? 2 : 1));
        if (!is_pinned) continue;
        // Blockers and drain orders give the same reason for the task.
        const auto binds = spec.tasks[0].resources.empty() ? Mentions("local volume or the name")
                                                           : Mentions("volumes like v");
        for (const auto& ranked : found.ranked)
            if (kind(ranked) == con::BlockerKind::bound_to_node)
                CHECK_THAT(ranked.blockers.at(0).reason, binds);
        const auto order = con::drain_order(Cluster::build(spec), {});
        const auto left = std::ranges::find_if(order.left, [](const con::Explanation& e) {
            return e.blockers.at(0).fixed_by == con::FixedBy::bound_to_node;
        });
        REQUIRE(left != order.left.end());
        CHECK_THAT(left->text, Mentions("'a1' must stay") && binds);
    }
}

TEST_CASE("blockers: of two pods that name the same node, only the one on it is bound to it") {
    for (const bool first : {true, false}) {
        INFO(first);
        ClusterSpec spec;
        for (const std::string name : {"a", "b"}) {
            spec.nodes.push_back(node(name));
            spec.nodes.back().labels = {{"kubernetes.io/hostname", name}};
        }
        spec.tasks = {task("there", "a", {0}), task("elsewhere", "b", {0})};
        for (auto& one : spec.tasks) one.node_selector = {{"kubernetes.io/hostname", "a"}};
        if (!first) std::swap(spec.tasks[0], spec.tasks[1]);
        const auto found = con::blockers(Cluster::build(spec));
        CHECK(found.found == 1);
        const auto order = con::drain_order(Cluster::build(spec), {});
        REQUIRE(order.left.size() == 1);
        CHECK_THAT(order.left.front().text, Mentions("'there' must stay"));
    }
}

TEST_CASE("blockers: pairs on different nodes are tried if no single one helps") {
    // x fits on b after y has left for c. The other tasks on b and c may run there only.
    ClusterSpec spec;
    spec.nodes = {node("a"), node("b"), node("c", 8, "other")};
    spec.tasks = {task("x", "a", {0, 1, 2, 3}, true), task("y", "b", {0, 1, 2}, true),
                  task("z", "b", {3, 4, 5}), task("w", "c", {0, 1, 2, 3})};
    spec.tasks[0].gpu_models = {"H20"};
    for (std::size_t n = 1; n < 3; ++n) {
        spec.nodes[n].labels = {{"disk", spec.nodes[n].name}};
        spec.tasks[n + 1].node_selector = {{"disk", spec.nodes[n].name}};
    }
    const auto found = con::blockers(Cluster::build(spec));
    CHECK(found.vacated_nodes == 0);
    CHECK(found.gpus_without_all == 8);
    CHECK(found.pairs);
    REQUIRE(found.ranked.size() == 1);
    CHECK(found.ranked[0].blockers.size() == 2);
    CHECK(found.ranked[0].gpus == 8);
    CHECK(found.planned == 2);
    CHECK(found.pairs_planned == 1);
    const auto few = con::blockers(Cluster::build(spec), {.max_plans = 2});
    CHECK(few.ranked.empty());
    CHECK(few.planned == 2);
    CHECK(few.pairs_planned == 0);
    spec.tasks[1].gpu_models = {"H20"};  // now nothing helps, and no pair is tried
    CHECK_FALSE(con::blockers(Cluster::build(spec)).pairs);
}

TEST_CASE("blockers: a loan in use cannot be removed") {
    auto spec = half_full();
    spec.tasks[0].standby = true;  // a1
    spec.tasks[0].priority_class = PriorityClass::hp;
    spec.tasks.push_back(task("user", "a", {0, 1}));  // uses what a1 lends
    spec.tasks.back().priority_class = PriorityClass::lp;
    const auto found = con::blockers(Cluster::build(spec));
    CHECK(found.found == 1);
    CHECK(found.planned == 0);
    CHECK(found.not_removable == 1);
}

TEST_CASE("blockers: the time limit holds for the first plan") {
    const auto found = con::blockers(Cluster::build(half_full()), {.time_limit = 0.0});
    CHECK(found.stop_reason == StopReason::time_limit);
    CHECK(found.vacated_nodes == 0);
}

TEST_CASE("blockers: nodes of one model, and bad options") {
    auto spec = half_full();
    spec.nodes.push_back(node("x", 8, "B"));
    spec.nodes.push_back(node("y", 8, "B"));
    spec.tasks.push_back(task("x1", "x", {0}, true));
    spec.tasks.push_back(task("y1", "y", {0}));
    const auto cluster = Cluster::build(spec);
    const auto found = con::blockers(cluster, {.gpu_model = "B"});
    CHECK(found.vacated_nodes == 1);
    CHECK(found.nodes_held == 1);
    CHECK(con::blockers(cluster, {.gpu_model = "b"}).nodes_held == 1);
    CHECK_THROWS_AS(con::blockers(cluster, {.gpu_model = "H2"}), InvalidInput);
    CHECK_THROWS_AS(con::blockers(cluster, {.exempt = {make_id<NodeId>(99)}}), InvalidInput);
    CHECK_THROWS_AS(con::blockers(cluster, {.max_plans = 0}), InvalidInput);
    CHECK(con::blockers(Cluster()).ranked.empty());
}

TEST_CASE("what_if: the queue, added nodes and a consolidation") {
    auto spec = half_full();
    spec.tasks.push_back(pending("big", 8));
    spec.tasks.push_back(pending("first", 4));
    spec.tasks.back().priority = 5;
    spec.tasks.push_back(pending("huge", 16));
    const auto cluster = Cluster::build(spec);
    const auto now = con::what_if(cluster, {});
    REQUIRE(now.states.size() == 2);
    CHECK(now.jobs.at(0).name == "first");
    CHECK(starting(now, 0) == std::vector<std::string>{"first"});
    CHECK(starting(now, 1) == std::vector<std::string>{"first", "big"});
    CHECK(now.states[0].idle_gpus == 16);
    CHECK(now.states[0].empty_nodes == 0);
    CHECK(now.states[1].empty_nodes == 2);
    CHECK(now.states[1].moves == 4);
    CHECK_FALSE(now.jobs.at(2).outcomes.at(1).alone);
    CHECK_THAT(now.jobs.at(2).outcomes.at(1).reason, Mentions("impossible 'huge' needs 16 idle GPUs has 8"));
    CHECK_THAT(now.jobs.at(1).outcomes.at(0).reason, !Mentions("impossible"));
    // Only nodes that have room now count as such.
    for (auto& n : spec.nodes) n.taints = {{.key = "gpu", .value = "present", .effect = "NoSchedule"}};
    spec.tasks.push_back(task("full", "a", {4, 5, 6, 7}));
    const auto tainted = con::what_if(Cluster::build(spec), {.consolidate = false});
    CHECK_THAT(tainted.jobs.at(0).outcomes.at(0).reason,
               Mentions("impossible: for 4 nodes only the taint gpu=present:NoSchedule forbids it; if it "
                        "tolerated every taint, 3 have room now, such as 'b'"));

    const auto more = con::what_if(
        cluster, {.add_nodes = {con::nodes_like(cluster, cluster.find_node("a"), 1)}, .consolidate = false});
    REQUIRE(more.states.size() == 2);
    CHECK(starting(more, 1) == std::vector<std::string>{"first", "big"});
    CHECK(more.states[1].placements.back().node == "a-new-1");
}

TEST_CASE("what_if: jobs that their groups make impossible") {
    // Two nodes in use, which hold a whole job if the other tasks leave.
    ClusterSpec spec;
    spec.nodes = {node("a"), node("b")};
    spec.tasks = {task("runs-a", "a", {0, 1, 2, 3}), task("runs-b", "b", {0, 1, 2, 3})};
    const auto reason = [&](int pods, const std::function<void(TaskSpec&)>& change) {
        auto asked = spec;
        asked.jobs = {{.name = "asks", .min_members = pods}};
        for (int p = 0; p < pods; ++p) {
            asked.tasks.push_back(pending("p" + std::to_string(p), 1, "asks"));
            asked.tasks.back().groups = {"ours"};
            change(asked.tasks.back());
        }
        const auto answer = con::what_if(Cluster::build(asked), {.consolidate = false});
        return answer.jobs.at(0).outcomes.at(0).reason;
    };
    const auto apart = [](TaskSpec& pod) { pod.avoid = {{.group = "ours"}}; };
    CHECK(reason(2, apart).empty());
    CHECK_THAT(reason(3, apart), Mentions("impossible"));
    const auto spread = [](TaskSpec& pod) { pod.spread = {{.group = "ours", .min_domains = 3}}; };
    CHECK(reason(2, spread).empty());
    CHECK_THAT(reason(3, spread), Mentions("impossible"));
    CHECK_THAT(reason(1, [](TaskSpec& pod) { pod.near = {{.group = "absent"}}; }), Mentions("impossible"));
    // A task that runs keeps them away, or must stay for them.
    spec.tasks[0].groups = spec.tasks[1].groups = {"others"};
    const auto avoids = reason(1, [](TaskSpec& pod) { pod.avoid = {{.group = "others"}}; });
    CHECK_THAT(avoids, !Mentions("impossible"));
    CHECK_FALSE(avoids.empty());
    spec.tasks[0] = task("runs-a", "a", {0, 1, 2, 3, 4, 5, 6, 7});
    spec.tasks[0].groups = {"leads"};
    const auto near = reason(1, [](TaskSpec& pod) { pod.near = {{.group = "leads"}}; });
    CHECK_THAT(near, !Mentions("impossible"));
    CHECK_FALSE(near.empty());
}

TEST_CASE("what_if: removed nodes, cordoned nodes and gangs") {
    auto spec = half_full();
    spec.nodes.push_back(node("z"));
    spec.nodes.back().schedulable = false;
    spec.tasks[1].how = Mobility::none;  // a2
    spec.jobs = {{.name = "gang", .min_members = 2}, {.name = "few", .min_members = 3}};
    for (const auto* name : {"g1", "g2", "g3"}) spec.tasks.push_back(pending(name, 6, "gang"));
    spec.tasks.push_back(pending("f1", 1, "few"));
    const auto cluster = Cluster::build(spec);
    const auto uncordoned =
        con::what_if(cluster, {.uncordon = {cluster.find_node("z")}, .consolidate = false});
    const auto& few = uncordoned.jobs.at(0);
    CHECK(few.name == "few");
    CHECK_THAT(few.outcomes.at(1).reason,
               Mentions("its gang is incomplete 'few' needs 3 members only 1 exists"));
    // A job that does not wait for room starts in no state.
    spec.jobs[0].waiting = WaitingReason{WaitingFor::quota, "team-a"};
    const auto held = con::what_if(Cluster::build(spec), {.consolidate = false});
    CHECK_FALSE(held.jobs.at(1).outcomes.at(0).starts);
    CHECK_THAT(held.jobs.at(1).outcomes.at(0).reason, Mentions("does not wait for room team-a"));
    CHECK_FALSE(uncordoned.jobs.at(1).outcomes.at(0).starts);
    CHECK_FALSE(uncordoned.jobs.at(1).outcomes.at(1).starts);  // two of three need two nodes
    CHECK_THAT(uncordoned.jobs.at(1).outcomes.at(1).reason, !Mentions("impossible"));
    spec.jobs[0].waiting.reset();
    spec.jobs[0].min_members = 6;  // each pod fits, but only five nodes are there, one of them cordoned
    for (const auto* name : {"g4", "g5", "g6"}) spec.tasks.push_back(pending(name, 6, "gang"));
    const auto too_many = con::what_if(Cluster::build(spec), {.consolidate = false});
    CHECK_THAT(too_many.jobs.at(1).outcomes.at(0).reason, Mentions("impossible"));
    spec.jobs[0].min_members = 2;
    spec.tasks.resize(spec.tasks.size() - 3);

    // Kubernetes taints what it cordons.
    spec.nodes.back().taints = {{.key = "node.kubernetes.io/unschedulable", .effect = "NoSchedule"}};
    spec.tasks.push_back(pending("whole", 8));
    const auto tainted = Cluster::build(spec);
    const auto untainted =
        con::what_if(tainted, {.uncordon = {tainted.find_node("z")}, .consolidate = false});
    CHECK(starting(untainted, 0).empty());
    CHECK(starting(untainted, 1) == std::vector<std::string>{"whole"});

    const auto removed = con::what_if(cluster, {.remove = {cluster.find_node("a")}, .consolidate = false});
    CHECK(removed.lost == std::vector<std::string>{"a2"});
    const auto a1 = std::find_if(removed.jobs.begin(), removed.jobs.end(),
                                 [](const auto& job) { return job.name == "a1"; });
    REQUIRE(a1 != removed.jobs.end());
    CHECK(a1->displaced);
    CHECK_FALSE(a1->outcomes.at(0).starts);
    CHECK(a1->outcomes.at(1).starts);
    CHECK(removed.states[1].jobs == removed.states[0].jobs + 1);
}

TEST_CASE("what_if: whether a gang starts does not depend on the order of its pods") {
    std::vector<std::pair<std::string, std::int64_t>> pods = {{"g0", 8}, {"g1", 4}, {"g2", 4}};
    std::vector<std::string> first;
    do {
        ClusterSpec spec;
        spec.nodes = {node("a")};
        spec.jobs = {{.name = "gang", .min_members = 2}};
        for (const auto& [name, gpus] : pods) spec.tasks.push_back(pending(name, gpus, "gang"));
        for (const bool rename : {false, true}) {
            if (rename)  // so that names have the order of the list
                for (std::size_t i = 0; i < spec.tasks.size(); ++i)
                    spec.tasks[i].name = "p" + std::to_string(i);
            const auto answer = con::what_if(Cluster::build(spec), {.consolidate = false});
            CHECK(starting(answer, 0) == std::vector<std::string>{"gang"});  // the two that need 4
            CHECK(answer.jobs.at(0).outcomes.at(0).pods == 2);
        }
    } while (std::next_permutation(pods.begin(), pods.end()));
}

TEST_CASE("what_if: a gang that can start without its gated pods starts") {
    ClusterSpec spec;
    spec.nodes = {node("a")};
    spec.jobs = {{.name = "gang", .min_members = 2}};
    for (const auto* name : {"g0", "g1", "g2"}) spec.tasks.push_back(pending(name, 4, "gang"));
    spec.tasks[0].waiting = {WaitingFor::gate, "approval"};
    const auto answer = con::what_if(Cluster::build(spec), {.consolidate = false});
    CHECK(starting(answer, 0) == std::vector<std::string>{"gang"});
    CHECK(answer.jobs.at(0).pods == 2);
    spec.nodes[0].gpu_count = 4;
    spec.nodes[0].cpu_milli = 64'000;
    const auto small = con::what_if(Cluster::build(spec), {.consolidate = false});
    CHECK_THAT(small.jobs.at(0).outcomes.at(0).reason, !Mentions("does not wait"));
    spec.jobs[0].min_members = 3;
    const auto held = con::what_if(Cluster::build(spec), {.consolidate = false});
    CHECK_THAT(held.jobs.at(0).outcomes.at(0).reason, Mentions("does not wait for room approval"));
}

TEST_CASE("what_if and blockers report progress") {
    auto spec = half_full();
    for (const auto t : {0u, 2u, 4u})
        spec.tasks[t].locked = true;  // one per node, so that unlocking one helps
    spec.tasks.push_back(pending("p", 1));
    const auto cluster = Cluster::build(spec);
    std::int64_t reports = 0;
    Context context;
    context.progress = [&](const Progress&) { ++reports; };
    (void)con::what_if(cluster, {.consolidate = false}, context);
    CHECK(std::exchange(reports, 0) > 0);
    (void)con::blockers(cluster, {}, context);
    CHECK(reports > 0);
}

TEST_CASE("what_if: a job starts with all its pods, or as many as its gang needs") {
    ClusterSpec spec;
    spec.nodes = {node("a")};
    for (const auto* name : {"p0", "p1", "p2", "p3"}) spec.tasks.push_back(pending(name, 4, "job"));
    struct Case {
        std::int64_t min_members, pods;
        bool starts;
    };
    for (const auto& [min_members, pods, starts] :
         {Case{0, 0, false}, Case{1, 2, false}, Case{2, 2, true}, Case{3, 0, false}}) {
        INFO(min_members);
        spec.jobs = {{.name = "job", .min_members = min_members}};
        const auto answer = con::what_if(Cluster::build(spec), {.consolidate = false});
        CHECK(answer.states[0].starts == (starts ? 1 : 0));
        CHECK(answer.states[0].pods == pods);
        const auto& outcome = answer.jobs.at(0).outcomes.at(0);
        CHECK(outcome.starts == starts);
        CHECK(outcome.alone == starts);
        CHECK(outcome.pods == pods);
        CHECK(outcome.reason.empty() == starts);
    }
}

TEST_CASE("pods that never move: the blocker says why, and a controller recreates those of removed nodes") {
    struct Case {
        std::optional<std::string> owner_kind;
        bool locked;
        con::BlockerKind kind;
        con::FixedBy fixed_by;
        bool is_lost;
        const char* reason;
    };
    using enum con::BlockerKind;
    const auto [owner_kind, is_locked, kind, fixed_by, is_lost, reason] = GENERATE(values<Case>({
        {"Job", false, never_moves, con::FixedBy::never_moves, false, "protected annotation scheduler"},
        {"RayCluster", false, never_moves, con::FixedBy::never_moves, false, "protected RayCluster"},
        {"", false, no_controller, con::FixedBy::no_controller, true, "no controller would recreate it"},
        {std::nullopt, false, never_moves, con::FixedBy::never_moves, true, "kind of owner forbids moves"},
        {"Job", true, con::BlockerKind::locked, con::FixedBy::locked, true, "locked"},
    }));
    auto spec = half_full();
    spec.tasks[0].how = is_locked ? Mobility::restart : Mobility::none;  // a1
    spec.tasks[0].locked = is_locked;
    spec.tasks[0].owner_kind = owner_kind;
    const auto cluster = Cluster::build(spec);
    const auto a = cluster.find_node("a");
    const auto found = con::blockers(cluster);
    REQUIRE(found.found == 1);
    const auto& blocker = found.ranked.empty() ? found.others.at(0) : found.ranked[0].blockers.at(0);
    CHECK(blocker.kind == kind);
    CHECK_THAT(blocker.reason, Mentions(reason));
    const auto order = con::drain_order(cluster, {.nodes = {{a}}});
    CHECK(order.left.at(0).blockers.at(0).fixed_by == fixed_by);
    CHECK_THAT(order.left.at(0).text, Mentions("'a1' must stay") && Mentions(reason));
    const auto removed = con::what_if(cluster, {.remove = {a}, .consolidate = false});
    CHECK(removed.lost == (is_lost ? std::vector<std::string>{"a1"} : std::vector<std::string>{}));
    CHECK(removed.jobs.size() == (is_lost ? 1 : 2));  // a2 waits in any case
}

TEST_CASE("blockers of a GPU model count the nodes that a goal counts") {
    auto spec = half_full();
    for (const auto n : {0u, 1u, 2u}) spec.nodes[n].gpu_model = "H100";  // a, b, c
    spec.nodes[0].taints = {{.key = "dedicated", .value = "x", .effect = "NoSchedule"}};
    spec.nodes[1].schedulable = false;
    spec.tasks[0].locked = spec.tasks[2].locked = spec.tasks[4].locked = true;  // on a, b and c
    const auto cluster = Cluster::build(spec);
    CHECK(con::blockers(cluster, {.gpu_model = "h100"}).nodes_held == 1);
    CHECK(con::blockers(cluster).nodes_held == 2);  // not b
    spec.tasks[0].locked = false;                   // a could be vacated, but does not count
    CHECK(con::blockers(Cluster::build(spec), {.gpu_model = "h100"}).vacated_nodes == 0);
}

TEST_CASE("what_if: displaced tasks queue behind those that wait") {
    ClusterSpec spec;
    spec.nodes = {node("a"), node("b")};
    spec.tasks = {task("a1", "a", {0, 1, 2, 3, 4, 5, 6, 7}), pending("waits", 8)};
    spec.tasks.back().start_time = 100;
    const auto cluster = Cluster::build(spec);
    const auto answer = con::what_if(cluster, {.remove = {cluster.find_node("a")}, .consolidate = false});
    CHECK(starting(answer, 1) == std::vector<std::string>{"waits"});
}

TEST_CASE("what_if: without time, no job is tried, and all states are there") {
    auto spec = half_full();
    spec.tasks.push_back(pending("p", 1));
    const auto answer = con::what_if(Cluster::build(spec), {.time_limit = 0.0});
    CHECK(answer.stop_reason == StopReason::time_limit);
    CHECK(answer.states.size() == 2);
    CHECK(answer.jobs.at(0).outcomes.at(1).reason == "not tried");
}

TEST_CASE("what_if: bad options") {
    const auto cluster = Cluster::build(half_full());
    const auto a = cluster.find_node("a");
    CHECK_THROWS_AS(con::what_if(cluster, {.uncordon = {a}}), InvalidInput);
    auto spec = half_full();
    spec.nodes[0].schedulable = false;
    spec.nodes[0].taints = {{.key = "node.kubernetes.io/not-ready", .effect = "NoSchedule"}};
    CHECK_THROWS_WITH(con::what_if(Cluster::build(spec), {.uncordon = {a}}), Mentions("'a' is not ready"));
    CHECK_THROWS_AS(con::what_if(cluster, {.remove = {make_id<NodeId>(9)}}), InvalidInput);
    CHECK_THROWS_AS(con::what_if(cluster, {.add_nodes = {con::nodes_like(cluster, a, 0)}}), InvalidInput);
    CHECK_THROWS_AS(con::nodes_like(cluster, make_id<NodeId>(9), 1), InvalidInput);
}
