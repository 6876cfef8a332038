// SPDX-License-Identifier: Apache-2.0
// Nodes, tasks and jobs that come, change and go: handles, slots, refusals, copies. Random changes: property/model/membership.
#include "support/catch.hpp"

#include <gpusched/model/model.hpp>

using namespace gpusched;

namespace {

NodeSpec machine(const std::string& name, std::int64_t gpus = 4) {
    return {.name = name, .gpu_model = "A", .gpu_count = gpus, .cpu_milli = 8'000, .memory_mib = 1'000};
}

TaskSpec pod(const std::string& name, std::int64_t gpus = 1) {
    TaskSpec task{.name = name, .cpu_milli = 1'000, .memory_mib = 10, .gpu_count = gpus};
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

TEST_CASE("a label key becomes a level while the cluster runs") {
    Cluster cluster;
    auto in_zone = [&](const std::string& name, const std::string& zone) {
        auto node = machine(name);
        if (!zone.empty()) node.labels["zone"] = zone;
        return cluster.add_node(node);
    };
    const auto a = in_zone("a", "1"), b = in_zone("b", "1"), c = in_zone("c", "2"), d = in_zone("d", "");
    auto apart = pod("p0");
    apart.anti_affinity = {{"apart", first_label_level, 1}};
    REQUIRE_THROWS_WITH(cluster.add_task(apart), Mentions("anti_affinity level 16 \"node\" 0 15"));
    REQUIRE_THROWS_WITH(cluster.add_label_level(""), Mentions("label_levels empty key"));
    REQUIRE_THROWS_WITH(cluster.add_label_level("node"),
                        Mentions("label_levels 'node' level of single nodes"));
    REQUIRE(cluster.inventory().changes.label_levels == 0);
    REQUIRE(cluster.add_label_level("zone") == first_label_level);
    REQUIRE(cluster.add_label_level("zone") == first_label_level);
    REQUIRE(cluster.add_label_level("rack") == first_label_level + 1);
    REQUIRE(cluster.inventory().changes.label_levels == 2);
    REQUIRE(cluster.to_spec().label_levels == std::vector<std::string>{"zone", "rack"});

    // At most one in a zone; on a node of no zone there is no limit.
    const auto first = cluster.add_task(apart);
    cluster.bind(first, a, 0b1);
    apart.name = "p1";
    const auto second = cluster.add_task(apart);
    REQUIRE(find_obstacle(cluster, second.id, b.id) == Obstacle::anti_affinity);
    REQUIRE_THAT(describe_obstacle(cluster, second.id, b.id),
                 Mentions("anti-affinity domain '1' label 'zone' 2 members 'apart' at most 1"));
    REQUIRE(find_obstacle(cluster, second.id, c.id) == Obstacle::none);
    REQUIRE(find_obstacle(cluster, second.id, d.id) == Obstacle::none);
    REQUIRE(find_obstacle(cluster, first.id, b.id) == Obstacle::none);  // its own old copy
    cluster.bind(second, d, 0b1);
    apart.name = "p2";
    const auto third = cluster.add_task(apart);
    REQUIRE(find_obstacle(cluster, third.id, d.id) == Obstacle::none);
    REQUIRE(find_obstacle(cluster, third.id, c.id) == Obstacle::none);

    // All in one zone, and on no node without.
    auto together = pod("q0");
    together.affinity = {{"together", first_label_level}};
    const auto one = cluster.add_task(together);
    REQUIRE(find_obstacle(cluster, one.id, d.id) == Obstacle::affinity);
    REQUIRE_THAT(describe_obstacle(cluster, one.id, d.id), Mentions("affinity no label 'zone'"));
    cluster.bind(one, b, 0b1);
    together.name = "q1";
    const auto two = cluster.add_task(together);
    REQUIRE(find_obstacle(cluster, two.id, a.id) == Obstacle::none);
    REQUIRE(find_obstacle(cluster, two.id, c.id) == Obstacle::affinity);
    REQUIRE(find_obstacle(cluster, two.id, d.id) == Obstacle::affinity);

    // A node that moves to another zone takes its tasks along.
    auto moved = cluster.node_spec(b.id);
    moved.labels["zone"] = "2";
    cluster.update_node(b, moved);
    REQUIRE(find_obstacle(cluster, two.id, a.id) == Obstacle::affinity);
    REQUIRE(find_obstacle(cluster, two.id, c.id) == Obstacle::none);
    REQUIRE(Cluster::build(cluster.to_spec()).to_spec() == cluster.to_spec());
}

TEST_CASE("a copy gives slots away in the same order") {
    Cluster cluster;
    std::vector<NodeHandle> nodes;
    std::vector<TaskHandle> tasks;
    for (const std::string name : {"a", "b", "c", "d"}) {
        nodes.push_back(cluster.add_node(machine(name)));
        tasks.push_back(cluster.add_task(pod(name)));
    }
    for (const auto i : {2, 0, 3, 1}) {
        cluster.remove_node(nodes[i]);
        cluster.remove_task(tasks[i]);
    }
    auto copy = cluster;
    for (const std::string name : {"e", "f", "g", "h", "i"}) {
        REQUIRE(copy.add_node(machine(name)) == cluster.add_node(machine(name)));
        REQUIRE(copy.add_task(pod(name)) == cluster.add_task(pod(name)));
    }
    REQUIRE(index(cluster.find_node("e")) == 2);
    REQUIRE(index(cluster.find_node("h")) == 1);
    REQUIRE(index(copy.find_task("e")) == 2);
    REQUIRE(index(copy.find_task("i")) == 4);
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
    REQUIRE_THROWS_MESSAGE(cluster.remove_node(b), InvalidInput, "left cluster");
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
                           "node 'n' hold GPU 3; gpu_count 3");
    REQUIRE_THROWS_MESSAGE(cluster.update_node(node, machine("m")), InvalidInput,
                           "node 'n' name 'm' cannot change");
    REQUIRE_THROWS_MESSAGE(cluster.remove_node(node), InvalidInput, "node 'n' task 't' runs there");
    REQUIRE_THROWS_MESSAGE(cluster.add_task(pod("t")), InvalidInput, "task 't' duplicate");
    const auto other = cluster.add_task(pod("u"));
    REQUIRE_THROWS_MESSAGE(cluster.bind(other, node, 0b1), InvalidInput,
                           "task 'u' GPU 0 node 'n' beyond capacity");
    REQUIRE_THROWS_MESSAGE(cluster.bind(other, node, 0b11), InvalidInput, "task 'u' asks 1 GPU holds 2");
    REQUIRE_THROWS_MESSAGE(cluster.bind(other, node, 0b10000), InvalidInput,
                           "task 'u' holds GPU 4 node 'n' which has 4");
    cluster.remove_task(other);
    REQUIRE(cluster.to_spec() == before);
    REQUIRE(cluster.inventory().serial > serial);
}

TEST_CASE("membership changes wait until what-if changes are committed or undone") {
    Cluster cluster;
    const auto node = cluster.add_node(machine("n"));
    const auto task = cluster.add_task(pod("t"));
    cluster.assign(task.id, node.id, 0b1);
    REQUIRE_THROWS_MESSAGE(cluster.add_node(machine("m")), InvalidInput, "membership 1 changes undone");
    cluster.rollback(0);
    REQUIRE_FALSE(cluster.is_placed(task.id));
    cluster.assign(task.id, node.id, 0b1);
    cluster.reserve(task.id, node.id, 0b10);
    cluster.commit();
    REQUIRE_THROWS_MESSAGE(cluster.remove_task(task), InvalidInput, "task 't' reserved for it");
    cluster.unbind(task);
    REQUIRE_THROWS_MESSAGE(cluster.remove_node(node), InvalidInput, "node 'n' reserved there task 't'");
    auto with_failure = machine("n");
    with_failure.failed_gpus = {3};
    cluster.update_node(node, with_failure);
    REQUIRE(cluster.idle_gpus(node.id) == 0b101);  // one is reserved, one has failed
    cluster.unreserve(task.id, node.id, 0b10);
    cluster.commit();
    cluster.remove_task(task);
    cluster.remove_node(node);
}

TEST_CASE("a commit keeps the reservations that were not given back") {
    Cluster cluster;
    const auto node = cluster.add_node(machine("n"));
    const auto task = cluster.add_task(pod("t")), other = cluster.add_task(pod("u"));
    cluster.reserve(task.id, node.id, 0b1);
    cluster.reserve(other.id, node.id, 0b10);
    cluster.reserve(task.id, node.id, 0b100);
    cluster.unreserve(task.id, node.id, 0b1);
    cluster.commit();
    REQUIRE(cluster.idle_gpus(node.id) == 0b1001);
    REQUIRE_THROWS_MESSAGE(cluster.remove_task(task), InvalidInput, "task 't' reserved for it");
    cluster.unreserve(other.id, node.id, 0b10);
    cluster.reserve(other.id, node.id, 0b1);
    cluster.unreserve(other.id, node.id, 0b1);
    cluster.commit();
    REQUIRE(cluster.idle_gpus(node.id) == 0b1011);
    cluster.remove_task(other);
    REQUIRE_THROWS_MESSAGE(cluster.remove_task(task), InvalidInput, "task 't' reserved for it");
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
    REQUIRE_THROWS_MESSAGE(cluster.remove_job(job), InvalidInput, "job 'j' 2 tasks");
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

TEST_CASE("named resources appear with the first node or task that names them") {
    Cluster cluster;
    const auto plain = cluster.add_node(machine("plain"));
    auto node = machine("n");
    node.resources["pods"] = 2;
    const auto n = cluster.add_node(node);
    auto task = pod("t");
    task.resources = {{"pods", 2}, {"rdma/hca", 0}};
    const auto t = cluster.add_task(task);
    REQUIRE(cluster.inventory().changes.resources == 2);
    REQUIRE(find_obstacle(cluster, t.id, plain.id) == Obstacle::resource);
    cluster.bind(t, n, 0b1);
    task.name = "u";
    task.resources = {{"pods", 1}};
    task.node = "n";
    task.gpus = {1};
    REQUIRE_THROWS_MESSAGE(cluster.add_task(task), InvalidInput, "1 'pods' more than node 'n' left");
    task.resources = {{"disks", 1}};
    REQUIRE_THROWS_MESSAGE(cluster.add_task(task), InvalidInput, "1 'disks' more than node 'n' left");
    REQUIRE_FALSE(cluster.inventory().resource_names.find("disks"));
    node.resources["pods"] = 1;
    REQUIRE_THROWS_MESSAGE(cluster.update_node(n, node), InvalidInput, "node 'n' 1 'pods' more than has");
    node.resources["pods"] = 5;
    cluster.update_node(n, node);
    task.resources = {{"pods", 3}};
    (void)cluster.add_task(task);
    REQUIRE(cluster.node_spec(n.id).resources == node.resources);
    const auto pods = *cluster.inventory().resource_names.find("pods");
    REQUIRE(cluster.resource_free(n.id, pods) == 0);
    cluster.remove_task(t);
    REQUIRE(cluster.resource_free(n.id, pods) == 2);
}

TEST_CASE("devices that tasks hold stay theirs when the node changes") {
    Cluster cluster;
    auto node = machine("n", 1);
    node.devices = {{"mig-1g", 2, {}, 0}, {"mig-2g", 1, {}, 0}};
    const auto n = cluster.add_node(node);
    auto task = pod("t", 0);
    task.device_count = 1;
    task.device_classes = {"mig-2g", "mig-1g"};
    task.node = "n";
    task.assign_gpus = true;
    const auto t = cluster.add_task(task);
    REQUIRE(cluster.gpus_of(t.id) == gpu_bit(3));
    REQUIRE(cluster.task_spec(t.id).gpus == std::vector{3});
    REQUIRE(cluster.free_devices(n.id) == (gpu_bit(1) | gpu_bit(2)));
    task.name = "u";
    task.assign_gpus = false;
    task.gpus = {3};
    REQUIRE_THROWS_MESSAGE(cluster.add_task(task), InvalidInput, "device 3 node 'n' held another task");
    task.gpus = {0};
    REQUIRE_THROWS_MESSAGE(cluster.add_task(task), InvalidInput, "asks 0 GPUs holds 1");

    node.gpu_count = 4;  // device 3 would be a whole GPU
    REQUIRE_THROWS_MESSAGE(cluster.update_node(n, node), InvalidInput, "task 't' holds device 3 not class");
    node.gpu_count = 2;  // device 3 would be of the other class, which the task accepts as well
    node.failed_gpus = {3};
    cluster.update_node(n, node);
    REQUIRE(cluster.devices(n.id) == (gpu_bit(2) | gpu_bit(3) | gpu_bit(4)));
    REQUIRE(cluster.free_devices(n.id) == (gpu_bit(2) | gpu_bit(4)));
    cluster.remove_task(t);
    REQUIRE(cluster.free_devices(n.id) == (gpu_bit(2) | gpu_bit(4)));
    cluster.update_node(n, machine("n"));
    REQUIRE(cluster.devices(n.id) == 0);
    REQUIRE(cluster.idle_gpus(n.id) == 0b1111);
}

TEST_CASE("a task that singles out nodes finds those that come, change and go later") {
    Cluster cluster;
    auto task = pod("t");
    task.node_affinity = {{{{"kubernetes.io/hostname", MatchOperator::in, {"h"}}}, {}},
                          {{}, {{"metadata.name", MatchOperator::in, {"m"}}}}};
    const auto t = cluster.add_task(task);
    auto node = machine("n");
    const auto n = cluster.add_node(node), m = cluster.add_node(machine("m"));
    REQUIRE(find_obstacle(cluster, t.id, n.id) == Obstacle::not_eligible);
    REQUIRE(find_obstacle(cluster, t.id, m.id) == Obstacle::none);
    node.labels["kubernetes.io/hostname"] = "h";
    cluster.update_node(n, node);
    REQUIRE(find_obstacle(cluster, t.id, n.id) == Obstacle::none);
    node.labels["kubernetes.io/hostname"] = "other";
    cluster.update_node(n, node);
    REQUIRE(find_obstacle(cluster, t.id, n.id) == Obstacle::not_eligible);
    cluster.remove_node(m);
    const auto other = cluster.add_node(machine("other"));  // in the slot of "m"
    REQUIRE(other.id == m.id);
    REQUIRE(find_obstacle(cluster, t.id, other.id) == Obstacle::not_eligible);
    const auto again = cluster.add_node(machine("m"));
    REQUIRE(find_obstacle(cluster, t.id, again.id) == Obstacle::none);
    REQUIRE(cluster.inventory().node_classes.size() == 1);
    cluster.remove_task(t);
    task.name = "u";
    task.node_affinity = {{{{"kubernetes.io/hostname", MatchOperator::not_in, {"h"}}}, {}}};
    const auto u = cluster.add_task(task);
    REQUIRE(find_obstacle(cluster, u.id, n.id) == Obstacle::none);
    node.labels["kubernetes.io/hostname"] = "h";
    cluster.update_node(n, node);
    REQUIRE(find_obstacle(cluster, u.id, n.id) == Obstacle::not_eligible);
}

TEST_CASE("devices with reservations stay when the node changes") {
    Cluster cluster;
    auto node = machine("n", 1);
    node.devices = {{"mig-1g", 2, {}, 0}};
    const auto n = cluster.add_node(node);
    auto task = pod("t", 0);
    task.device_count = 1;
    task.device_classes = {"mig-1g"};
    const auto t = cluster.add_task(task);
    cluster.reserve(t.id, n.id, gpu_bit(2));
    cluster.commit();
    const auto refusal =
        "task 't' has reserved its device 2, which would not be of a class that the task accepts";
    REQUIRE_THROWS_MESSAGE(cluster.update_node(n, machine("n", 1)), InvalidInput, refusal);
    REQUIRE_THROWS_MESSAGE(cluster.update_node(n, machine("n", 3)), InvalidInput, refusal);
    node.devices.front().device_class = "mig-2g";
    REQUIRE_THROWS_MESSAGE(cluster.update_node(n, node), InvalidInput, refusal);
    node.devices = {{"mig-1g", 3, {}, 0}};
    cluster.update_node(n, node);
    REQUIRE(cluster.free_devices(n.id) == (gpu_bit(1) | gpu_bit(3)));
}

TEST_CASE("a free slot keeps no resources and devices") {
    Cluster cluster;
    auto node = machine("n", 1);
    node.resources = {{"pods", 5}};
    node.devices = {{"mig-1g", 2, {}, 0}};
    const auto n = cluster.add_node(node);
    cluster.remove_node(n);
    REQUIRE(cluster.resource_free(n.id, 0) == 0);
    REQUIRE(cluster.free_devices(n.id) == 0);
}

TEST_CASE("copies between changes make nothing grow") {
    Cluster cluster;
    (void)cluster.add_node(machine("m", 8));
    for (int round = 0; round < 10; ++round) {
        const auto before = cluster;
        const auto n = cluster.add_node(machine("n", 8));
        const auto between = cluster;
        cluster.remove_node(n);
        REQUIRE(cluster.inventory().gpu_slots == 16);
    }
}

TEST_CASE("every device that a task holds stays of the class it has, not only the first") {
    Cluster cluster;
    auto node = machine("n", 0);
    node.devices = {{"mig-1g", 2, {}, 0}};
    const auto n = cluster.add_node(node);
    auto task = pod("t", 0);
    task.device_count = 2;
    task.device_classes = {"mig-1g", "mig-2g"};
    task.node = "n";
    task.assign_gpus = true;
    (void)cluster.add_task(task);
    node.devices = {{"mig-1g", 1, {}, 0}, {"mig-2g", 1, {}, 0}};
    REQUIRE_THROWS_MESSAGE(cluster.update_node(n, node), InvalidInput, "task 't' holds device 0 not class");
}

TEST_CASE("a node that has left takes no task") {
    Cluster cluster;
    const auto old = cluster.add_node(machine("n"));
    const auto task = cluster.add_task(pod("t"));
    cluster.remove_node(old);
    REQUIRE_THROWS_MESSAGE(cluster.bind(task, old, gpu_bit(0)), InvalidInput, "left cluster");
    const auto now = cluster.add_node(machine("n"));
    REQUIRE(now.id == old.id);
    REQUIRE_THROWS_MESSAGE(cluster.bind(task, old, gpu_bit(0)), InvalidInput, "left cluster");
    cluster.bind(task, now, gpu_bit(0));
}

TEST_CASE("a new task is assigned a free failed GPU, and LP tasks lent GPUs") {
    Cluster cluster;
    auto node = machine("n", 2);
    node.failed_gpus = {0, 1};
    (void)cluster.add_node(node);
    auto task = pod("t");
    task.node = "n";
    task.gpus = {0};
    (void)cluster.add_task(task);
    task = pod("u");
    task.node = "n";
    task.assign_gpus = true;
    REQUIRE(cluster.gpus_of(cluster.add_task(task).id) == gpu_bit(1));

    (void)cluster.add_node(machine("m", 1));
    task = pod("s");
    task.node = "m";
    task.gpus = {0};
    task.priority_class = PriorityClass::hp;
    task.standby = true;
    (void)cluster.add_task(task);
    task = pod("v");
    task.node = "m";
    task.assign_gpus = true;
    REQUIRE_THROWS_MESSAGE(cluster.add_task(task), InvalidInput, "task 'v' node 'm' not enough GPUs");
    task.priority_class = PriorityClass::lp;
    REQUIRE(cluster.gpus_of(cluster.add_task(task).id) == gpu_bit(0));
}

TEST_CASE("eligibility of combined requirements holds when kinds of nodes multiply") {
    Cluster cluster;
    auto first = pod("first", 0), second = pod("second", 0);
    first.node_selector = {{"zone", "z0"}};
    second.node_selector = {{"zone", "z1"}};
    const auto a = cluster.add_task(first), b = cluster.add_task(second);
    for (int zone = 0; zone < 200; ++zone) {
        auto node = machine("n" + std::to_string(zone));
        node.labels = {{"zone", "z" + std::to_string(zone)}};
        (void)cluster.add_node(node);
    }
    for (const auto node : cluster.nodes()) {
        REQUIRE(cluster.inventory().eligible(a.id, node) == (cluster.name(node) == "n0"));
        REQUIRE(cluster.inventory().eligible(b.id, node) == (cluster.name(node) == "n1"));
    }
}

TEST_CASE("shared requirements of tasks with extras are reused") {
    Cluster cluster;
    auto node = machine("n");
    node.resources = {{"pods", 5}};
    (void)cluster.add_node(node);
    auto copy = cluster;
    for (int round = 0; round < 20; ++round) {
        if (round % 8 == 7) copy = cluster;  // then references are counted again
        auto task = pod("t");
        task.resources = {{"pods", 1 + round}};
        task.node_selector = {{"tier", "x" + std::to_string(round)}};
        task.node_affinity = {
            {{}, {{"metadata.name", MatchOperator::not_in, {"n" + std::to_string(round)}}}}};
        const auto t = cluster.add_task(task);
        task.name = "u";
        task.resources = {};  // the same set of nodes, other extras
        const auto u = cluster.add_task(task), v = [&] {
            task.name = "v";
            return cluster.add_task(task);
        }();
        REQUIRE(cluster.inventory().extras.size() == 3);
        REQUIRE(cluster.inventory().node_sets.size() == 1);
        REQUIRE(cluster.inventory().requirements.size() <= 2);
        for (const auto one : {t, u, v}) cluster.remove_task(one);
    }
}

TEST_CASE("a budget of groups that comes before any task has those that come later") {
    Cluster cluster;
    cluster.add_budget({.name = "b", .groups = {"web"}, .allowed_down = 1});
    auto task = pod("t");
    task.groups = {"web"};
    const auto t = cluster.add_task(task), u = cluster.add_task(pod("u"));
    REQUIRE(cluster.inventory().budgets_of(t.id).size() == 1);
    REQUIRE(cluster.inventory().budgets_of(u.id).empty());
}
