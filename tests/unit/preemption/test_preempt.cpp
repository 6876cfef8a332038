// SPDX-License-Identifier: Apache-2.0
// Hand-computed decisions, the paper's examples, options and explanations.
#include "machines.hpp"
#include "support/policies.hpp"

#include <gpusched/allocation/allocation.hpp>
#include <gpusched/verify/plan.hpp>

using namespace gpusched;
using namespace gpusched::preemption;
using testing_support::machine;
using testing_support::names;
using testing_support::pending;
using testing_support::running;

namespace {

// FlexTopo, section 2 (Figure 3): on machine 1 the low-priority tasks C hold one socket, on machine 2 two GPUs of each;
// machine 3 is full of tasks that stay.
ClusterSpec paper_example() {
    ClusterSpec spec;
    for (const auto* name : {"machine1", "machine2", "machine3"}) spec.nodes.push_back(machine(name));
    const auto stays = [&](const std::string& name, const std::string& node, std::vector<int> gpus) {
        spec.tasks.push_back(running(name, node, std::move(gpus), 1000));
        spec.tasks.back().preemptible = false;
    };
    stays("b1", "machine1", {0, 1});
    stays("b2", "machine1", {2, 3});
    stays("b3", "machine2", {0, 1});
    stays("b4", "machine2", {4, 5});
    stays("a1", "machine3", {0, 1, 2, 3});
    stays("b5", "machine3", {4, 5});
    stays("b6", "machine3", {6, 7});
    for (const int gpu : {4, 5, 6, 7})
        spec.tasks.push_back(running("c1" + std::to_string(gpu), "machine1", {gpu}, 100));
    for (const int gpu : {2, 3, 6, 7})
        spec.tasks.push_back(running("c2" + std::to_string(gpu), "machine2", {gpu}, 100));
    return spec;
}

}  // namespace

TEST_CASE("an engine that would have no effect is refused") {
    const auto refused = [](Policy policy) {
        REQUIRE_THROWS_MESSAGE(validate({.policy = policy, .engine = Engine::plain}), InvalidInput,
                               "engine='plain' not supported policy '" + std::string(enum_name(policy)) +
                                   "'; use");
        validate({.policy = policy, .engine = Engine::masks});
    };
    for (const auto policy : {Policy::spot, Policy::reprieve, Policy::first_fit}) refused(policy);
    for (const auto policy : {Policy::imp, Policy::exhaustive, Policy::spot_exact})
        validate({.policy = policy, .engine = Engine::plain});
}

TEST_CASE("the paper's example: twelve options for workload B, four of them misaligned") {
    auto spec = paper_example();
    auto b = pending("b", 2, 1000);
    b.hardware_affinity = {{HardwareLevel::socket, HardwareQos::best_effort}};
    b.cpu_local = true;  // NUMA guaranteed, and every GPU has a NUMA node of its own
    spec.tasks.push_back(b);
    auto a = pending("a", 4, 1000);
    a.hardware_affinity = b.hardware_affinity;
    a.cpu_local = true;
    spec.tasks.push_back(a);
    const auto cluster = Cluster::build(spec);
    const auto preemptor = cluster.find_task("b");
    std::size_t options = 0, aligned = 0;
    for (const auto node : cluster.nodes()) {
        options += minimal_victim_sets(cluster, preemptor, node, {.qos = std::nullopt}).sets.size();
        aligned += minimal_victim_sets(cluster, preemptor, node).sets.size();  // guaranteed
    }
    CHECK(options == 12);
    CHECK(aligned == 8);
    CHECK(minimal_victim_sets(cluster, preemptor, cluster.find_node("machine3")).sets.empty());

    // Workload A fits both machines, but only the first within a socket.
    for (const auto policy : {Policy::imp, Policy::exhaustive}) {
        const auto found = preempt(cluster, cluster.find_task("a"), {.policy = policy});
        REQUIRE(found.decision);
        CHECK(cluster.name(found.decision->node) == "machine1");
        CHECK(found.decision->gpus == 0b11110000);
        CHECK(found.decision->topology == topology::GpuLocality::socket);
        CHECK(*found.decision->score == 0.5 / 400 + 0.25);
    }
}

TEST_CASE("few victims are not always the best ones") {
    // Two victims of priority 500 or four of 200: IMP stops at two, Equation 1 prefers a sum of 800.
    ClusterSpec spec;
    spec.nodes = {machine("n")};
    spec.tasks = {running("c1", "n", {0, 1}, 500),
                  running("c2", "n", {2, 3}, 500),
                  running("d1", "n", {4}, 200),
                  running("d2", "n", {5}, 200),
                  running("d3", "n", {6}, 200),
                  running("d4", "n", {7}, 200),
                  pending("b", 4, 1000)};
    const auto cluster = Cluster::build(spec);
    const auto b = cluster.find_task("b");
    const auto imp = preempt(cluster, b, {.policy = Policy::imp, .qos = Qos::best_effort}).decision.value();
    CHECK(names(cluster, imp.victims) == std::vector<std::string>{"c1", "c2"});
    CHECK(*imp.score == 0.5 / 1000 + 0.25);
    const auto best =
        preempt(cluster, b, {.policy = Policy::exhaustive, .qos = Qos::best_effort}).decision.value();
    CHECK(names(cluster, best.victims) == std::vector<std::string>{"d1", "d2", "d3", "d4"});
    CHECK(best.priority_sum == 800);
    const auto kubernetes = preempt(cluster, b, {.policy = Policy::reprieve}).decision.value();
    CHECK(names(cluster, kubernetes.victims) == std::vector<std::string>{"d1", "d2", "d3", "d4"});
}

TEST_CASE("scores of sums around zero") {
    CHECK(paper_score(2, 1, 0.5) == 0.75);
    CHECK(paper_score(1, 0, 0.5) == 0.5);
    CHECK(paper_score(0, 0, 0.5) == 0.5);
    CHECK(paper_score(-1, 0, 0.5) == 0.75);
    CHECK(paper_score(-3, 0.5, 0.25) == 0.25 * 1.75 + 0.75 * 0.5);
    for (std::int64_t sum = -50; sum < 50; ++sum)
        if (sum != 0) CHECK(paper_score(sum, 0.5, 0.5) > paper_score(sum + 1, 0.5, 0.5));
}

TEST_CASE("weights of priorities of any sign are above zero and grow with the priority") {
    CHECK(priority_weight(1000) == 1000);
    CHECK(priority_weight(1) == 1);
    CHECK(priority_weight(0) == 0.5);
    CHECK(priority_weight(-2) == 0.25);
    CHECK(priority_weight(-1) == Approx(1.0 / 3).epsilon(1e-12));
    CHECK(priority_weight(-1'000'000'000'000) > 0);
    for (std::int64_t p = -2000; p < 50; ++p) CHECK(priority_weight(p) < priority_weight(p + 1));
    CHECK(score(0.5, 1, 0.5) == 0.5 * 1.5 + 0.5);
    CHECK(score(1, 0, 0.5) == 0.5);
    CHECK(score(400, 0.5, 0.5) == paper_score(400, 0.5, 0.5));
}

TEST_CASE("of eight victims of negative priority one leaves, and the paper's form takes all of them") {
    ClusterSpec spec;
    spec.nodes = {machine("n")};
    for (int g = 0; g < 8; ++g) spec.tasks.push_back(running("t" + std::to_string(g), "n", {g}, -10));
    spec.tasks.push_back(pending("p", 1, 0));
    const auto cluster = Cluster::build(spec);
    const auto p = cluster.find_task("p");
    const auto one = preempt(cluster, p, {.policy = Policy::exhaustive}).decision.value();
    CHECK(names(cluster, one.victims) == std::vector<std::string>{"t0"});
    CHECK(*one.score == score(priority_weight(-10), 0, 0.5));  // closeness does not count
    const auto all =
        preempt(cluster, p, {.policy = Policy::exhaustive, .score = ScoreForm::paper}).decision.value();
    CHECK(all.victims.size() == 8);
    CHECK(*all.score == paper_score(-80, 0, 0.5));
    // The lowest priorities go first, whatever their sign.
    for (auto& task : spec.tasks)
        if (task.name == "t5") task.priority = -11;
    const auto other = Cluster::build(spec);
    for (const auto policy : {Policy::exhaustive, Policy::imp})
        CHECK(names(other, preempt(other, p, {.policy = policy}).decision.value().victims) ==
              std::vector<std::string>{"t5"});
}

TEST_CASE("a task that fits evicts no task and takes the closest GPUs") {
    ClusterSpec spec;
    spec.nodes = {machine("a"), machine("b")};
    spec.tasks = {running("x", "a", {0, 1, 2, 4, 5, 6}, 1), running("y", "b", {0, 1, 2, 3, 4, 5}, 1),
                  pending("p", 2, 5)};
    const auto cluster = Cluster::build(spec);
    const auto p = cluster.find_task("p");
    const auto close = preempt(cluster, p, {.qos = Qos::best_effort}).decision.value();
    CHECK(cluster.name(close.node) == "b");
    CHECK(close.victims.empty());
    CHECK(!close.score);
    CHECK(close.gpus == 0b11000000);
    CHECK(cluster.name(preempt(cluster, p, {.qos = Qos::none}).decision->node) == "a");
}

TEST_CASE("ties go to fewer victims, lower priority, lower cost, then names") {
    ClusterSpec spec;
    spec.now = 100;
    spec.nodes = {machine("b"), machine("a")};
    const std::vector<int> first{0, 1, 2, 3}, second{4, 5, 6, 7};
    spec.tasks = {running("z", "b", first, 7), running("y", "b", second, 7), running("x", "a", first, 7),
                  running("w", "a", second, 7), pending("p", 4, 10)};
    const auto victim = [&] {
        const auto cluster = Cluster::build(spec);
        return names(cluster, preempt(cluster, cluster.find_task("p")).decision->victims);
    };
    CHECK(victim() == std::vector<std::string>{"w"});  // node a, then w before x
    spec.tasks[0].start_time = 50;
    CHECK(victim() == std::vector<std::string>{"z"});  // the least work
    spec.tasks[2].last_checkpoint_time = 60;
    CHECK(victim() == std::vector<std::string>{"x"});
}

TEST_CASE("spot: the published prefix evicts unneeded victims, the exact one does not") {
    ClusterSpec spec;
    spec.now = 100;
    spec.nodes = {machine("n")};
    spec.tasks = {running("small", "n", {0, 1}, 0), running("large", "n", {2, 3, 4, 5, 6, 7}, 0),
                  pending("p", 4, 0)};
    spec.tasks[0].start_time = 90;
    spec.tasks[1].start_time = 50;
    const auto cluster = Cluster::build(spec, IdOrder::as_listed);
    const auto p = cluster.find_task("p");
    const auto prefix = preempt(cluster, p, {.policy = Policy::spot}).decision.value();
    CHECK(names(cluster, prefix.victims) == std::vector<std::string>{"large", "small"});
    CHECK(prefix.cost == 1000 * (2 * 10 + 6 * 50));
    CHECK(!prefix.score);
    const auto exact = preempt(cluster, p, {.policy = Policy::spot_exact}).decision.value();
    CHECK(names(cluster, exact.victims) == std::vector<std::string>{"large"});
    CHECK(exact.cost == 1000 * 6 * 50);
    // Priorities do not matter to spot policies, but class does.
    CHECK(!preempt(cluster, p, {.policy = Policy::imp}).decision);
    // A hook of one's own.
    const auto hook = [](const Cluster&, TaskId task, std::int64_t now) {
        return static_cast<std::int64_t>(index(task)) * 10 + now;
    };
    CHECK(preempt(cluster, p, {.policy = Policy::spot_exact, .now = 7, .cost = hook}).decision->cost == 17);
    CHECK_THROWS_MESSAGE(
        preempt(cluster, p,
                {.policy = Policy::spot,
                 .cost = [](const Cluster&, TaskId, std::int64_t) { return std::int64_t{-1}; }}),
        InvalidInput, "cost: -1; expected 0 72057594037927935");
}

TEST_CASE("evicting one pod of a gang loses the whole gang's work") {
    ClusterSpec spec;
    spec.now = 100;
    spec.nodes = {machine("n"), machine("far")};
    spec.tasks = {running("pod1", "n", {0, 1, 2, 3}, 0), running("pod2", "far", {0, 1, 2, 3, 4, 5, 6, 7}, 0),
                  running("alone", "n", {4, 5, 6, 7}, 0), pending("p", 4, 0)};
    spec.tasks[0].job = spec.tasks[1].job = "gang";
    spec.tasks[0].start_time = 90;
    spec.tasks[1].start_time = 90;
    spec.tasks[2].start_time = 75;
    const auto decide = [&](Policy policy) {
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const auto d = preempt(cluster, cluster.find_task("p"), {.policy = policy}).decision.value();
        return std::pair(names(cluster, d.victims), d.cost);
    };
    const auto lost = [&](const char* task, auto work_of) {
        const auto cluster = Cluster::build(spec);
        return work_of(cluster, cluster.find_task(task), std::int64_t{100});
    };
    CHECK(lost("pod1", lost_work) == 40'000);  // as published: the pod by itself
    CHECK(lost("pod1", gang_lost_work) == 120'000);
    CHECK(lost("pod2", gang_lost_work) == 120'000);
    CHECK(lost("alone", gang_lost_work) == 100'000);
    CHECK(lost("p", gang_lost_work) == lost("p", lost_work));  // one without a job, running or not
    for (const auto policy : {Policy::spot, Policy::spot_exact}) {
        // By itself pod1 loses 4 x 10, with its gang 12 x 10; the other one loses 4 x 25.
        CHECK(decide(policy) == std::pair(std::vector<std::string>{"alone"}, std::int64_t{100'000}));
    }
    spec.jobs = {{"gang", 1, {}}};  // one of them may leave
    CHECK(lost("pod1", gang_lost_work) == 40'000);
    CHECK(lost("pod2", gang_lost_work) == 80'000);
    for (const auto policy : {Policy::spot, Policy::spot_exact})
        CHECK(decide(policy) == std::pair(std::vector<std::string>{"pod1"}, std::int64_t{40'000}));
    // Its subgroup needs this task and has no other: the gang stops with it.
    spec.jobs[0].subgroups = {{"leader", 1}, {"worker", 0}};
    spec.tasks[0].subgroup = "leader";
    spec.tasks[1].subgroup = "worker";
    CHECK(lost("pod1", gang_lost_work) == 120'000);
    CHECK(lost("pod2", gang_lost_work) == 80'000);
    for (const auto policy : {Policy::spot, Policy::spot_exact})
        CHECK(decide(policy) == std::pair(std::vector<std::string>{"pod2"}, std::int64_t{80'000}));
}

TEST_CASE("groups: victims that stand in the way by anti-affinity are found") {
    ClusterSpec spec;
    spec.nodes = {machine("n")};
    spec.tasks = {running("idle", "n", {0}, 1), running("rival", "n", {1}, 1), pending("p", 1, 10)};
    spec.tasks[1].anti_affinity = {{"app", node_level, 1}};
    spec.tasks[2].anti_affinity = {{"app", node_level, 1}};
    const auto cluster = Cluster::build(spec);
    for (const auto policy : {Policy::imp, Policy::exhaustive, Policy::reprieve, Policy::spot_exact}) {
        const auto d = preempt(cluster, cluster.find_task("p"), {.policy = policy}).decision;
        REQUIRE(d);
        CHECK(names(cluster, d->victims) == std::vector<std::string>{"rival"});
    }
    spec.tasks[1].locked = true;
    const auto stuck = Cluster::build(spec);
    const auto why = explain(stuck, stuck.find_task("p"));
    CHECK(why.obstacle == Obstacle::anti_affinity);
}

TEST_CASE("sixteen GPUs and dozens of victims stay exact and quick") {
    ClusterSpec spec;
    NodeSpec node{.name = "n",
                  .gpu_count = 16,
                  .cpu_milli = 1'000'000,
                  .memory_mib = 1'000'000,
                  .hardware = Hardware{"", {{0, 500, 0xFF}, {1, 500, 0xFF00}}}};
    spec.nodes = {node};
    for (int g = 0; g < 16; ++g)
        for (int i = 0; i < 3; ++i) {
            auto task = running("t" + std::to_string(100 * i + g), "n", {g}, 10 + (g * 7 + i * 3) % 5);
            task.gpu_share_milli = 300;
            spec.tasks.push_back(task);
        }
    spec.tasks.push_back(pending("whole", 8, 100));
    spec.tasks.push_back(pending("part", 1, 100));
    spec.tasks.back().gpu_share_milli = 600;
    const auto cluster = Cluster::build(spec);
    // Sum of priorities on each GPU; eight GPUs of one NUMA node must be emptied.
    std::int64_t sums[2] = {0, 0};
    for (std::size_t i = 0; i < 48; ++i) sums[spec.tasks[i].gpus[0] / 8] += spec.tasks[i].priority;
    const auto whole =
        preempt(cluster, cluster.find_task("whole"), {.policy = Policy::exhaustive, .qos = Qos::guaranteed});
    REQUIRE(whole.decision);
    CHECK(whole.proven);
    CHECK(whole.decision->victims.size() == 24);
    CHECK(whole.decision->priority_sum == std::min(sums[0], sums[1]));
    const auto part = preempt(cluster, cluster.find_task("part"), {.policy = Policy::imp});
    CHECK(part.proven);
    CHECK(part.decision->victims.size() == 2);
    CHECK(part.stats.sets_checked < 100'000);
    const auto cut = preempt(cluster, cluster.find_task("whole"),
                             {.policy = Policy::exhaustive, .qos = Qos::best_effort, .search_limit = 50});
    CHECK(!cut.proven);
}

TEST_CASE("more than 64 potential victims: all policies see all of them") {
    ClusterSpec spec;
    spec.nodes = {machine("n")};
    spec.nodes[0].memory_mib = 100'000;
    for (int i = 0; i < 64; ++i) spec.tasks.push_back(running("c" + std::to_string(i), "n", {}, 1));
    spec.tasks.push_back(running("gpu", "n", {0, 1, 2, 3, 4, 5, 6, 7}, 1));
    spec.tasks.back().start_time = -1000;
    spec.tasks.push_back(pending("p", 4, 100));
    auto big = pending("big", 4, 100);
    big.memory_mib = 100'001;
    spec.tasks.push_back(big);
    const auto cluster = Cluster::build(spec);
    const auto p = cluster.find_task("p");
    for (const auto policy : testing_support::all_policies()) {
        const auto found = preempt(cluster, p, {.policy = policy});
        REQUIRE(found.decision);
        CHECK(found.proven);
        // By ascending cost or priority the bystanders leave first, as written.
        const bool prefix = policy == Policy::spot || policy == Policy::first_fit;
        CHECK(found.decision->victims.size() == (prefix ? 65 : 1));
        CHECK(found.decision->victims.back() == cluster.find_task("gpu"));
    }
    const auto sets = minimal_victim_sets(cluster, p, NodeId{0}, {.qos = std::nullopt});
    CHECK(sets.proven);
    REQUIRE(sets.sets.size() == 1);
    CHECK(names(cluster, sets.sets[0]) == std::vector<std::string>{"gpu"});
    const auto missing = explain(cluster, cluster.find_task("big"));
    CHECK_THAT(missing.text,
               Mentions("node 'n' closest: without 65 potential victims, 1 MiB memory missing"));
}

TEST_CASE("a task that does not wait for room evicts no task, and the reason is that of allocate") {
    ClusterSpec spec;
    spec.nodes = {machine("n")};
    spec.jobs = {{.name = "gang", .min_members = 3},
                 {.name = "held", .waiting = {{WaitingFor::quota, "full"}}}};
    spec.tasks = {running("victim", "n", {0, 1, 2, 3, 4, 5, 6, 7}, 1), pending("gated", 8, 9),
                  pending("member", 4, 9), pending("other", 4, 9), pending("queued", 8, 9)};
    spec.tasks[1].waiting = {WaitingFor::gate, "approval"};
    spec.tasks[2].job = spec.tasks[3].job = "gang";
    spec.tasks[4].job = "held";
    for (const bool waits : {true, false}) {
        auto cluster = Cluster::build(spec);
        OnlinePreemption online(cluster);
        for (const auto* const name : {"gated", "member", "queued"}) {
            INFO(name << " waits for something else: " << waits);
            const auto task = cluster.find_task(name);
            const auto pods = allocation::pending_pods(cluster, name);
            const auto reason = allocation::allocate(cluster, pods).reason;
            const auto one = preempt(cluster, task);
            const auto gang = preempt_gang(cluster, pods);
            CHECK(one.decision.has_value() == !waits);
            CHECK(gang.decision.has_value() == !waits);
            CHECK((online.decide(task) == nullptr) == waits);
            CHECK(
                minimal_victim_sets(cluster, task, cluster.find_node("n"), {.qos = Qos::none}).sets.empty() ==
                waits);
            if (!waits) continue;
            CHECK(one.proven);
            const auto why = explain(cluster, task);
            CHECK(why.obstacle == Obstacle::waiting);
            CHECK(why.text == reason);
            CHECK(gang.reason == reason);
        }
        spec.jobs = {};
        spec.tasks[1].waiting.reset();
    }
}

TEST_CASE("the message names the missing resources of the closest node") {
    ClusterSpec spec;
    spec.nodes = {machine("far"), machine("near")};
    spec.tasks = {running("x", "far", {0, 1, 2, 3, 4, 5}, 50), running("y", "near", {0, 1, 2, 4, 5}, 50),
                  pending("p", 4, 10)};
    auto cluster = Cluster::build(spec);
    auto why = explain(cluster, cluster.find_task("p"));
    CHECK(cluster.name(why.node.value()) == "near");
    CHECK(why.obstacle == Obstacle::gpu);
    CHECK(why.missing == 1);
    CHECK_THAT(why.text, Mentions("node 'near' closest: no potential victims, 1 of the 4 GPUs missing"));
    spec.tasks[2].gpu_count = 3;
    spec.tasks[2].cpu_milli = 1000;
    spec.tasks[2].hardware_affinity = {{HardwareLevel::socket, HardwareQos::guaranteed}};
    cluster = Cluster::build(spec);
    why = explain(cluster, cluster.find_task("p"));
    CHECK(why.obstacle == Obstacle::hardware);
    CHECK_THAT(why.text, Mentions("node 'near' closest: no potential victims, no socket has 3 free GPUs"));
    spec.tasks[2].gpu_models = {"other"};
    cluster = Cluster::build(spec);
    why = explain(cluster, cluster.find_task("p"));
    CHECK(why.obstacle == Obstacle::not_eligible);
    CHECK_FALSE(why.node);
}

TEST_CASE("devices count in the lost work") {
    // Two GPU models on a node: the GPUs of the node, and devices of a class for the other model.
    ClusterSpec spec;
    spec.now = 100;
    spec.nodes = {{.name = "n", .gpu_model = "A100", .gpu_count = 4, .cpu_milli = 64000, .memory_mib = 1000}};
    spec.nodes[0].devices = {{"L20", 4}};
    spec.tasks = {running("both", "n", {0, 1}, 0), running("devices", "n", {}, 0),
                  running("gpus", "n", {2, 3}, 0), pending("p", 2, 1000)};
    const auto with_devices = [&](std::size_t task, int count, std::vector<int> held) {
        spec.tasks[task].device_count = count;
        spec.tasks[task].device_classes = {"L20"};
        spec.tasks[task].gpus.insert(spec.tasks[task].gpus.end(), held.begin(), held.end());
    };
    with_devices(0, 1, {4});
    with_devices(1, 3, {5, 6, 7});
    spec.tasks[0].start_time = 95;
    spec.tasks[1].start_time = 70;
    spec.tasks[2].start_time = 90;
    spec.tasks[3].device_count = 1;
    spec.tasks[3].device_classes = {"L20"};
    const auto cluster = Cluster::build(spec);
    const auto lost = [&](const char* task) { return lost_work(cluster, cluster.find_task(task), 100); };
    CHECK(lost("both") == 3 * 5 * 1000);
    CHECK(lost("devices") == 3 * 30 * 1000);
    CHECK(lost("gpus") == 2 * 10 * 1000);
    // The task with both loses 15; with free devices the choice would be two victims, one of them with 90.
    for (const auto policy : {Policy::spot, Policy::spot_exact}) {
        const auto d = preempt(cluster, cluster.find_task("p"), {.policy = policy}).decision.value();
        CHECK(names(cluster, d.victims) == std::vector<std::string>{"both"});
        CHECK(d.cost == 15'000);
    }
}

TEST_CASE("the victims hold the named resource or the class of devices that is missing") {
    ClusterSpec spec;
    spec.nodes = {machine("n")};
    spec.nodes[0].resources = {{"rdma/hca", 4}};
    spec.nodes[0].devices = {{"mig-1g", 1}, {"mig-2g", 1}};
    spec.tasks = {running("x", "n", {}, 1), running("y", "n", {}, 1), pending("p", 1, 10)};
    for (const int i : {0, 1}) {
        auto& task = spec.tasks[static_cast<std::size_t>(i)];
        task.resources = {{"rdma/hca", 1 + i}};
        task.device_count = 1;
        task.device_classes = {"mig-1g", "mig-2g"};
        task.gpus = {8 + i};
    }
    const auto check = [&](const std::vector<std::string>& victims) {
        const auto cluster = Cluster::build(spec);
        for (const auto policy : {Policy::imp, Policy::exhaustive, Policy::spot_exact}) {
            CAPTURE(enum_name(policy));
            const auto decision = preempt(cluster, cluster.find_task("p"), {.policy = policy}).decision;
            REQUIRE(decision);
            CHECK(names(cluster, decision->victims) == victims);
        }
    };
    auto& p = spec.tasks[2];
    p.resources = {{"rdma/hca", 1}};
    check({});
    p.resources = {{"rdma/hca", 3}};
    check({"y"});
    p.resources.clear();
    p.device_count = 1;
    p.device_classes = {"mig-1g"};
    check({"x"});
    p.device_classes = {"mig-2g"};
    check({"y"});
    // Tasks that are alike except for their devices.
    spec.tasks[0].resources.clear();
    spec.tasks[1].resources.clear();
    check({"y"});
    p.device_classes = {"mig-1g"};
    check({"x"});
}

TEST_CASE("a named resource or a class of devices that is missing is named") {
    ClusterSpec spec;
    spec.nodes = {machine("n")};
    spec.nodes[0].resources = {{"pods", 9}, {"rdma/hca", 4}};
    spec.nodes[0].devices = {{"mig-1g", 2}, {"mig-2g", 1}};
    spec.tasks = {running("x", "n", {0}, 50), running("stays", "n", {1}, 50), pending("p", 1, 10)};
    spec.tasks[0].preemptible = true;
    spec.tasks[0].priority = 1;
    spec.tasks[0].resources = {{"rdma/hca", 1}};
    spec.tasks[1].resources = {{"rdma/hca", 2}};
    spec.tasks[2].resources = {{"pods", 1}, {"rdma/hca", 3}};
    auto cluster = Cluster::build(spec);
    auto why = explain(cluster, cluster.find_task("p"));
    CHECK(why.obstacle == Obstacle::resource);
    CHECK(why.missing == 1);
    CHECK_THAT(why.text, Mentions("node 'n' closest: without 1 potential victim, 1 'rdma/hca' missing"));
    spec.tasks[2].resources = {};
    spec.tasks[2].device_count = 3;
    spec.tasks[2].device_classes = {"mig-2g", "mig-1g"};
    cluster = Cluster::build(spec);
    why = explain(cluster, cluster.find_task("p"));
    CHECK(why.obstacle == Obstacle::device);
    CHECK(why.missing == 0);
    CHECK_THAT(why.text, Mentions("node 'n' closest: without 1 potential victim, fewer 3 of "
                                  "'mig-2g' or 'mig-1g' left"));
}

TEST_CASE("a daemon that clears a node is in its plan") {
    ClusterSpec spec;
    spec.nodes = {machine("n")};
    spec.tasks = {running("x", "n", {0, 1, 2, 3, 4, 5, 6, 7}, 1), pending("d", 1, 10)};
    spec.tasks[1].daemon = true;
    for (const bool another : {false, true}) {
        if (another) spec.tasks.push_back(running("stays", "n", {}, 20));
        const auto cluster = Cluster::build(spec);
        const auto d = cluster.find_task("d");
        const auto plan = to_plan(*preempt(cluster, d).decision, d);
        CHECK(plan.vacated_nodes.size() == (another ? 0u : 1u));
        CHECK(verify::plan(spec, to_spec(plan, cluster)).ok);
        auto live = cluster;
        live.keep_events();
        PreemptionIndex index_;
        CHECK(*index_.decide(live, d) == *preempt(cluster, d).decision);
        CHECK(*index_.decide(cluster, d) == *preempt(cluster, d).decision);  // which keeps no events
        const std::vector<TaskId> gang{d};
        CHECK(verify::plan(spec, to_spec(to_plan(*preempt_gang(cluster, gang).decision, gang), cluster)).ok);
    }
}

TEST_CASE("nodes that a filter refuses are no candidates") {
    ClusterSpec spec;
    for (const auto* name : {"a", "b", "c"}) {
        auto node = machine(name);
        node.network = {"s"};
        spec.nodes.push_back(node);
    }
    const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};
    spec.tasks = {running("cheap", "a", all, 1), running("dear", "b", all, 2),
                  running("dearest", "c", all, 3), pending("p", 8, 9), pending("q", 8, 9)};
    const auto cluster = Cluster::build(spec);
    const auto p = cluster.find_task("p");
    for (const auto policy : testing_support::all_policies()) {
        Options options{.policy = policy};
        const auto where = [&] {
            const auto found = preempt(cluster, p, options).decision;
            return found ? cluster.name(found->node) : "";
        };
        CAPTURE(enum_name(policy));
        const auto first = where();
        options.filter = allocation::AnyFilter(
            [&](const Cluster& in, TaskId task, NodeId node) { return task != p || in.name(node) != first; });
        CHECK_FALSE(where().empty());
        CHECK(where() != first);
        // Of a gang: with those of its pods that have a place.
        options.filter = allocation::AnyFilter([](const Cluster& in, TaskId, NodeId node) {
            return in.name(node) == "b" || (in.name(node) == "c" && in.is_placed(in.find_task("p")));
        });
        const auto gang = preempt_gang(cluster, std::vector{p, cluster.find_task("q")}, options);
        REQUIRE(gang.decision);
        CHECK(cluster.name(gang.decision->pods[0].node) == "b");
        CHECK(cluster.name(gang.decision->pods[1].node) == "c");
        options.filter = allocation::AnyFilter([](const Cluster&, TaskId, NodeId) { return false; });
        CHECK(where().empty());
        CHECK_THAT(explain(cluster, p, options).text, Mentions("no schedulable node passes the filter"));
    }
    Options with;
    with.filter = allocation::AnyNode{};
    REQUIRE_THROWS_MESSAGE(PreemptionIndex(with), InvalidInput, "filter is not supported by PreemptionIndex");
}

TEST_CASE("the largest costs add up without overflow") {
    ClusterSpec spec;
    spec.now = 1'000'000'000'000;
    spec.nodes = {machine("n"), machine("other")};
    spec.nodes[1].schedulable = false;
    for (int g = 0; g < 8; ++g) {
        spec.tasks.push_back(running("x" + std::to_string(g), "n", {g}, 1));
        spec.tasks.back().start_time = -1'000'000'000'000;
        spec.tasks.back().job = "gang";
    }
    spec.tasks.push_back(pending("p", 8, 10));
    for (int i = 0; i < 600; ++i) {  // the rest of the gang
        spec.tasks.push_back(running("y" + std::to_string(i), "other", {}, 1));
        spec.tasks.back().job = "gang";
    }
    const auto cluster = Cluster::build(spec);
    const std::int64_t most = INT64_MAX / 128;
    const Options options{.policy = Policy::spot_exact,
                          .cost = [&](const Cluster&, TaskId, std::int64_t) { return most; }};
    const auto p = cluster.find_task("p");
    const auto d = preempt(cluster, p, options).decision;
    REQUIRE(d);
    CHECK(d->cost == 9 * most);  // those elsewhere count as one
    CHECK(preempt(cluster, p, {.policy = Policy::spot}).decision->cost == 8'000 * 2'000'000'000'000);
}

TEST_CASE("bad options and tasks are refused") {
    ClusterSpec spec;
    spec.nodes = {machine("n")};
    spec.tasks = {running("x", "n", {0}, 1), pending("p", 1, 10)};
    const auto cluster = Cluster::build(spec);
    const auto p = cluster.find_task("p");
    CHECK_THROWS_MESSAGE(preempt(cluster, p, {.alpha = 1.5}), InvalidInput, "alpha: 1.5; expected 0 1");
    CHECK_THROWS_MESSAGE(preempt(cluster, p, {.search_limit = 0}), InvalidInput,
                         "search_limit: 0; expected 1");
    CHECK_THROWS_MESSAGE(preempt(cluster, p, {.socket_score = 2}), InvalidInput,
                         "socket_score: 2; expected at most numa_score, 1");
    CHECK(preempt(cluster, p, {.socket_score = 1, .cross_score = 1}).decision);
    CHECK_THROWS_MESSAGE(preempt(cluster, p, {.cross_score = 0.7}), InvalidInput,
                         "cross_score: 0.7; expected at most socket_score, 0.5");
    CHECK_THROWS_MESSAGE(preempt(cluster, p, {.numa_score = -1}), InvalidInput,
                         "numa_score: -1; expected at least socket_score, 0.5");
    CHECK_THROWS_MESSAGE(preempt(cluster, p, {.socket_score = -1}), InvalidInput,
                         "socket_score: -1; expected at least cross_score,");
    CHECK_THROWS_MESSAGE(preempt(cluster, p, {.numa_score = std::numeric_limits<double>::infinity()}),
                         InvalidInput, "numa_score: inf; expected finite");
    CHECK_THROWS_MESSAGE(preempt(cluster, p, {.now = INT64_MAX}), InvalidInput,
                         "now: 9223372036854775807; expected -1000000000000 1000000000000");
    CHECK_THROWS_MESSAGE(preempt(cluster, TaskId{7}), InvalidInput, "task: #7; expected below 2");
    CHECK_THROWS_MESSAGE(preempt(cluster, cluster.find_task("x")), InvalidInput,
                         "task: 'x'; expected pending runs on node 'n'");
    CHECK_THROWS_MESSAGE(minimal_victim_sets(cluster, p, NodeId{3}), InvalidInput,
                         "node: #3; expected below 1");
}
