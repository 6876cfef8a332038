// SPDX-License-Identifier: Apache-2.0
// Nodes, tasks and jobs that come, change and go: handles, slots, refusals, copies. Random changes: property/model_membership.
#include "support/catch.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/model.hpp>

#include <string>
#include <vector>

using namespace gpusched;
using Catch::Matchers::ContainsSubstring;

namespace {

NodeSpec machine(const std::string& name, std::int64_t gpus = 4) {
    return {.name = name, .gpu_model = "A", .gpu_count = gpus, .cpu_milli = 8'000, .memory_mib = 1'000};
}

TaskSpec pod(const std::string& name, std::int64_t gpus = 1) {
    TaskSpec task;
    task.name = name;
    task.cpu_milli = 1'000;
    task.memory_mib = 10;
    task.gpu_count = gpus;
    return task;
}

}  // namespace

TEST_CASE("a cluster grows from nothing and empties again") {
    Cluster cluster;
    const auto node = cluster.add_node(machine("n"));
    const auto task = cluster.add_task(pod("t", 2));
    REQUIRE(cluster.node_count() == 1);
    REQUIRE(find_obstacle(cluster, task.id, node.id) == Obstacle::none);
    cluster.bind(task, node, 0b11);
    REQUIRE(cluster.idle_gpus(node.id) == 0b1100);
    REQUIRE(cluster.cpu_free_milli(node.id) == 7'000);
    cluster.remove_task(task);
    REQUIRE(cluster.idle_gpus(node.id) == 0b1111);
    cluster.remove_node(node);
    REQUIRE(cluster.node_count() == 0);
    REQUIRE(cluster.task_count() == 0);
    REQUIRE(cluster.to_spec() == ClusterSpec{});
}

TEST_CASE(
    "a slot is given away again, the one first that has been free longest, and old handles are refused") {
    Cluster cluster;
    const auto a = cluster.add_node(machine("a")), b = cluster.add_node(machine("b")),
               c = cluster.add_node(machine("c"));
    cluster.remove_node(b);
    cluster.remove_node(a);
    REQUIRE(cluster.node_count() == 1);
    REQUIRE(cluster.node_slots() == 3);
    std::vector<NodeId> living;
    for (const auto node : cluster.nodes()) living.push_back(node);
    REQUIRE(living == std::vector{c.id});
    REQUIRE_FALSE(cluster.contains(a.id));
    REQUIRE_FALSE(cluster.has(b));
    const auto d = cluster.add_node(machine("d", 8)), e = cluster.add_node(machine("e"));
    REQUIRE(d.id == b.id);
    REQUIRE(e.id == a.id);
    REQUIRE(d.generation == b.generation + 1);
    REQUIRE_FALSE(cluster.has(b));
    REQUIRE(cluster.has(d));
    REQUIRE_THROWS_MESSAGE(cluster.remove_node(b), InvalidInput, "it has left the cluster");
    REQUIRE(cluster.gpu_count(d.id) == 8);
    REQUIRE(cluster.find_node("e") == e.id);
    REQUIRE_THROWS_AS(cluster.find_node("a"), InvalidInput);
}

TEST_CASE("a change that build would refuse is refused with every problem, and changes nothing") {
    auto cluster = Cluster::build({.nodes = {machine("n")}});
    const auto node = cluster.handle(cluster.find_node("n"));
    const auto task = cluster.add_task(pod("t", 4));
    cluster.bind(task, node, 0b1111);
    const auto before = cluster.to_spec();
    const auto serial = cluster.inventory().serial;

    auto bad = machine("n");
    bad.cpu_milli = -1;
    bad.taints = {{"", "", "Never"}};
    try {
        (void)cluster.add_node(bad);
        FAIL();
    } catch (const InvalidInput& error) {
        REQUIRE(error.problems().size() == 4);  // cpu_milli, the key and the effect of the taint, the name
    }
    REQUIRE_THROWS_MESSAGE(cluster.update_node(node, machine("n", 3)), InvalidInput,
                           "tasks hold its GPU 3; gpu_count is 3");
    REQUIRE_THROWS_MESSAGE(cluster.update_node(node, machine("m")), InvalidInput, "which cannot change");
    REQUIRE_THROWS_MESSAGE(cluster.remove_node(node), InvalidInput, "task 't' runs there");
    REQUIRE_THROWS_MESSAGE(cluster.add_task(pod("t")), InvalidInput, "duplicate task name");
    const auto other = cluster.add_task(pod("u"));
    REQUIRE_THROWS_MESSAGE(cluster.bind(other, node, 0b1), InvalidInput,
                           "GPU 0 of node 'n' would be held beyond its capacity");
    REQUIRE_THROWS_MESSAGE(cluster.bind(other, node, 0b11), InvalidInput, "asks for 1 GPUs, but holds 2");
    REQUIRE_THROWS_MESSAGE(cluster.bind(other, node, 0b10000), InvalidInput,
                           "holds GPU 4 of node 'n', which has 4");
    cluster.remove_task(other);
    REQUIRE(cluster.to_spec() == before);
    REQUIRE(cluster.inventory().serial > serial);
}

TEST_CASE("membership waits until what-if changes are kept or taken back") {
    Cluster cluster;
    const auto node = cluster.add_node(machine("n"));
    const auto task = cluster.add_task(pod("t"));
    cluster.assign(task.id, node.id, 0b1);
    REQUIRE_THROWS_MESSAGE(cluster.add_node(machine("m")), InvalidInput,
                           "1 changes can be undone; commit or roll back first");
    cluster.rollback(0);
    REQUIRE_FALSE(cluster.is_placed(task.id));
    cluster.assign(task.id, node.id, 0b1);
    cluster.reserve(task.id, node.id, 0b10);
    cluster.commit();
    REQUIRE_THROWS_MESSAGE(cluster.remove_task(task), InvalidInput, "room is reserved for it");
    cluster.unbind(task);
    REQUIRE_THROWS_MESSAGE(cluster.remove_node(node), InvalidInput, "room is reserved there for task 't'");
    auto with_failure = machine("n");
    with_failure.failed_gpus = {3};
    cluster.update_node(node, with_failure);
    REQUIRE(cluster.idle_gpus(node.id) == 0b101);  // one is reserved, one has failed
    cluster.unreserve(task.id, node.id, 0b10);
    cluster.commit();
    cluster.remove_task(task);
    cluster.remove_node(node);
}

TEST_CASE("a card may fail under a task, which keeps it, and be repaired") {
    Cluster cluster;
    const auto node = cluster.add_node(machine("n", 2));
    const auto task = cluster.add_task(pod("t"));
    cluster.bind(task, node, 0b1);
    auto spec = machine("n", 2);
    spec.failed_gpus = {0};
    cluster.update_node(node, spec);
    REQUIRE(cluster.gpus_of(task.id) == 0b1);
    REQUIRE(cluster.warnings().size() == 1);
    REQUIRE(cluster.gpu_free_milli(node.id, 0) == 0);
    cluster.update_node(node, machine("n", 2));
    REQUIRE(cluster.gpu_free_milli(node.id, 0) == 0);
    cluster.unbind(task);
    REQUIRE(cluster.idle_gpus(node.id) == 0b11);
}

TEST_CASE("copies go their own ways") {
    Cluster cluster;
    const auto node = cluster.add_node(machine("n"));
    const auto copy = cluster;
    cluster.update_node(node, machine("n", 2));
    (void)cluster.add_node(machine("m"));
    REQUIRE(copy.node_count() == 1);
    REQUIRE(copy.gpu_count(node.id) == 4);
    REQUIRE(cluster.node_count() == 2);
    REQUIRE(cluster.inventory().changes.copies == 1);
    REQUIRE(cluster.inventory().serial != copy.inventory().serial);
}

TEST_CASE("a job that only tasks name goes with the last of them") {
    Cluster cluster;
    auto task = pod("t");
    task.job = "j";
    const auto first = cluster.add_task(task);
    task.name = "u";
    const auto second = cluster.add_task(task);
    const auto job = cluster.handle(make_id<JobId>(*cluster.inventory().job_names.find("j")));
    REQUIRE_THROWS_MESSAGE(cluster.remove_job(job), InvalidInput, "it has 2 tasks");
    cluster.remove_task(first);
    REQUIRE(cluster.has(job));
    cluster.remove_task(second);
    REQUIRE_FALSE(cluster.has(job));
    const auto listed = cluster.add_job({.name = "j", .min_members = 2});
    const auto third = cluster.add_task(task);
    cluster.remove_task(third);
    REQUIRE(cluster.has(listed));
    REQUIRE(cluster.job_spec(listed.id).min_members == 2);
}

TEST_CASE("changes that cost as much as the cluster are counted") {
    Cluster cluster;
    auto node = machine("n");
    node.labels["zone"] = "z";
    (void)cluster.add_node(node);
    const auto& changes = [&]() -> const ChangeStatistics& { return cluster.inventory().changes; };
    REQUIRE(changes().first_changes == 1);
    auto task = pod("t");
    task.node_selector["zone"] = "z";
    (void)cluster.add_task(task);
    REQUIRE(changes().reclassifications == 1);
    task.name = "u";
    (void)cluster.add_task(task);
    REQUIRE(changes().reclassifications == 1);
    task = pod("v");
    task.anti_affinity = {{"g", node_level, 1}};
    (void)cluster.add_task(task);
    task.name = "w";
    (void)cluster.add_task(task);
    REQUIRE(changes().regroupings == 0);
    task.name = "x";
    task.anti_affinity = {{"g", 2, 1}};  // a level that the group does not have, nor the network
    (void)cluster.add_task(task);
    REQUIRE(changes().regroupings == 1);
    REQUIRE(changes().levels == 1);
}
