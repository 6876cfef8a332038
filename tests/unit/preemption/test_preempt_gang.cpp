// SPDX-License-Identifier: Apache-2.0
// Gangs of preemptors: one domain, all or none, each lost gang counted once.
#include "machines.hpp"
#include "support/policies.hpp"

#include <gpusched/verify/plan.hpp>

using namespace gpusched;
using namespace gpusched::preemption;
using testing_support::machine;
using testing_support::names;
using testing_support::pending;
using testing_support::running;

namespace {

ClusterSpec two_switches() {
    ClusterSpec spec;
    spec.now = 100;
    for (const auto* name : {"a1", "a2", "b1", "b2"}) {
        spec.nodes.push_back(machine(name));
        spec.nodes.back().network = {std::string("switch-") + name[0]};
    }
    for (int i = 0; i < 2; ++i) {
        spec.tasks.push_back(pending("pod" + std::to_string(i), 8, 1000));
        spec.tasks.back().job = "preemptors";
        spec.tasks.back().network_affinity = {0, NetworkMode::required};
    }
    return spec;
}

const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};

}  // namespace

TEST_CASE("the pods of a gang stay under the switch with the least loss") {
    auto spec = two_switches();
    // a1 is cheapest, but its neighbour is costly; under switch b both are in between.
    const std::int64_t starts[] = {95, 0, 80, 80};
    for (std::size_t i = 0; i < 4; ++i) {
        spec.tasks.push_back(running("lp-" + spec.nodes[i].name, spec.nodes[i].name, all, 0));
        spec.tasks.back().start_time = starts[i];
    }
    auto cluster = Cluster::build(spec, IdOrder::as_listed);
    const std::vector<TaskId> pods{TaskId{0}, TaskId{1}};
    const auto found = preempt_gang(cluster, pods, {.policy = Policy::spot_exact}).decision;
    REQUIRE(found);
    CHECK(names(cluster, found->victims) == std::vector<std::string>{"lp-b1", "lp-b2"});
    CHECK(found->cost == 2 * 8000 * 20);
    CHECK(found->lost_gangs == 2);
    CHECK(verify::plan(spec, to_spec(to_plan(*found, pods), cluster)).ok);

    // Under switch a both pods belong to one gang: dearer, but one gang.
    spec.tasks[2].job = spec.tasks[3].job = "gang";
    cluster = Cluster::build(spec, IdOrder::as_listed);
    const auto gangs =
        preempt_gang(cluster, pods, {.policy = Policy::spot_exact}, GangObjective::lost_gangs).decision;
    REQUIRE(gangs);
    CHECK(names(cluster, gangs->victims) == std::vector<std::string>{"lp-a1", "lp-a2"});
    CHECK(gangs->lost_gangs == 1);
    CHECK(gangs->cost == 8000 * (5 + 100));

    // One task stays under each switch: no task is evicted for half a gang.
    spec.tasks[3].locked = spec.tasks[5].locked = true;
    cluster = Cluster::build(spec, IdOrder::as_listed);
    CHECK(!preempt_gang(cluster, pods, {.policy = Policy::spot}).decision);
    // Each pod by itself would find room.
    CHECK(preempt(cluster, pods[0], {.policy = Policy::spot}).decision);
}

TEST_CASE("running members decide the domain") {
    auto spec = two_switches();
    spec.tasks.push_back(running("lp", "b1", {0, 1, 2, 3}, 0));
    auto member = pending("member", 8, 1000);
    member.job = "preemptors";
    member.network_affinity = {0, NetworkMode::required};
    member.node = "b2";
    member.gpus = all;
    spec.tasks.push_back(member);
    const auto cluster = Cluster::build(spec, IdOrder::as_listed);
    const std::vector<TaskId> one{TaskId{0}};
    const auto found = preempt_gang(cluster, one, {.policy = Policy::spot}).decision;
    REQUIRE(found);
    CHECK(cluster.name(found->pods[0].node) == "b1");
    const std::vector<TaskId> both{TaskId{0}, TaskId{1}};
    CHECK(!preempt_gang(cluster, both, {.policy = Policy::spot}).decision);
}

TEST_CASE("a node of unknown position is no part of the switch that is called the same") {
    ClusterSpec spec;
    for (const auto* name : {"s", "x"}) spec.nodes.push_back(machine(name));
    spec.nodes[1].network = {"s"};
    for (int i = 0; i < 2; ++i) {
        spec.tasks.push_back(pending("pod" + std::to_string(i), 8, 1000));
        spec.tasks.back().job = "gang";
        spec.tasks.back().network_affinity = {0, NetworkMode::required};
    }
    const auto cluster = Cluster::build(spec, IdOrder::as_listed);
    const std::vector<TaskId> pods{TaskId{0}, TaskId{1}};
    const auto result = preempt_gang(cluster, pods);
    CHECK(!result.decision);
    CHECK(result.domains_considered == 2);
    CHECK_THAT(result.reason,
               Mentions("domain 's' closest: holds 1 of 2 pods, with evictions; 'pod1' does not fit"));
}

TEST_CASE("no pod of a gang leaves for another") {
    ClusterSpec spec;
    spec.nodes = {machine("n")};
    spec.tasks = {pending("low", 8, 10), pending("high", 4, 1000)};
    for (auto& task : spec.tasks) task.preemptible = true;
    const auto cluster = Cluster::build(spec, IdOrder::as_listed);
    for (const auto policy : {Policy::imp, Policy::first_fit, Policy::reprieve})
        CHECK(!preempt_gang(cluster, std::vector<TaskId>{TaskId{0}, TaskId{1}}, {.policy = policy}).decision);
    spec.tasks[0].priority_class = PriorityClass::lp;
    const auto borrowing = Cluster::build(spec, IdOrder::as_listed);
    CHECK(!preempt_gang(borrowing, std::vector<TaskId>{TaskId{0}, TaskId{1}}, {.policy = Policy::spot})
               .decision);
}

TEST_CASE("the pods' own gang loses no more than its surplus, however many pods come") {
    for (const int gpus : {2, 3, 4}) {
        ClusterSpec spec;
        spec.nodes = {machine("n")};
        spec.nodes[0].gpu_count = gpus;
        spec.nodes[0].hardware.reset();
        spec.jobs = {{.name = "k", .min_members = 1}};
        std::vector<TaskId> pods;
        for (int i = 0; i < gpus; ++i) spec.tasks.push_back(running("old" + std::to_string(i), "n", {i}, 0));
        for (int i = 0; i < gpus; ++i) {
            pods.push_back(make_id<TaskId>(spec.tasks.size()));
            spec.tasks.push_back(pending("new" + std::to_string(i), 1, 1));
        }
        for (auto& task : spec.tasks) task.job = "k";
        auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const auto fewer = std::span(pods).first(pods.size() - 1);
        for (const auto policy : testing_support::all_policies()) {
            INFO(gpus << " GPUs, " << enum_name(policy));
            CHECK(!preempt_gang(cluster, pods, {.policy = policy}).decision);
            const auto found = preempt_gang(cluster, fewer, {.policy = policy}).decision;
            REQUIRE(found);
            CHECK(found->victims.size() == fewer.size());
            CHECK(found->lost_gangs == 0);
        }
        // What runs of another job may leave whole, its last member, too.
        for (const auto pod : pods) spec.tasks[index(pod)].job = "other";
        cluster = Cluster::build(spec, IdOrder::as_listed);
        const auto found = preempt_gang(cluster, pods).decision;
        REQUIRE(found);
        CHECK(found->victims.size() == pods.size());
        CHECK(found->lost_gangs == 1);
    }
}

TEST_CASE("requirements of other members of the job bind the pods too") {
    auto spec = two_switches();
    for (int i = 0; i < 2; ++i) spec.tasks[static_cast<std::size_t>(i)].network_affinity.reset();
    auto member = pending("member", 8, 1000);
    member.job = "preemptors";
    member.network_affinity = {0, NetworkMode::required};
    spec.tasks.push_back(member);
    spec.tasks.push_back(running("lp", "a1", all, 0));
    const std::vector<TaskId> pods{TaskId{0}, TaskId{1}};
    auto cluster = Cluster::build(spec, IdOrder::as_listed);
    auto found = preempt_gang(cluster, pods).decision;  // a2 and b1 would be nearer by name
    REQUIRE(found);
    CHECK(verify::plan(spec, to_spec(to_plan(*found, pods), cluster)).ok);
    CHECK(found->victims.empty());
    // Pods of two jobs, of which one runs elsewhere already.
    spec = two_switches();
    spec.tasks[1].job = "second";
    for (const auto* job : {"preemptors", "second"}) {
        auto runs = pending(std::string("runs-") + job, 1, 1000);
        runs.job = job;
        runs.node = job[0] == 'p' ? "a1" : "b1";
        runs.gpus = {0};
        runs.cpu_milli = 0;
        spec.tasks.push_back(runs);
    }
    cluster = Cluster::build(spec, IdOrder::as_listed);
    const auto apart = preempt_gang(cluster, pods);
    CHECK(!apart.decision);
    CHECK(apart.domains_considered == 0);
    CHECK_THAT(apart.reason, Mentions("no domain all running members and schedulable node"));
    for (auto& node : spec.nodes) node.schedulable = false;
    spec.tasks.resize(2);
    CHECK_THAT(preempt_gang(Cluster::build(spec, IdOrder::as_listed), pods).reason,
               Mentions("no node schedulable"));
}

TEST_CASE("lists of pods that make no gang are refused") {
    auto spec = two_switches();
    spec.tasks.push_back(pending("free", 1, 0));
    const auto cluster = Cluster::build(spec, IdOrder::as_listed);
    const std::vector<TaskId> nobody, twice{TaskId{0}, TaskId{0}}, mixed{TaskId{0}, TaskId{2}};
    CHECK_THROWS_MESSAGE(preempt_gang(cluster, nobody), InvalidInput, "pods: none");
    CHECK_THROWS_MESSAGE(preempt_gang(cluster, twice), InvalidInput, "pods: 'pod0' listed twice");
    CHECK_THROWS_MESSAGE(preempt_gang(cluster, mixed), InvalidInput, "pods: 'free' another network level");
}

TEST_CASE("no task is evicted for a gang of two shapes that fits") {
    // 8 = 5 + 3 and 7 = 3 + 3: the pod of 5 must not take the tightest node.
    ClusterSpec spec;
    spec.nodes = {machine("n0"), machine("n1"), machine("z")};
    spec.nodes[0].failed_gpus = {7};
    spec.tasks = {running("v", "z", all, 0)};
    std::vector<TaskId> pods;
    for (const int gpus : {3, 3, 3, 5}) {
        pods.push_back(make_id<TaskId>(spec.tasks.size()));
        spec.tasks.push_back(pending("p" + std::to_string(pods.size()), gpus, 1000));
        spec.tasks.back().job = "gang";
    }
    auto cluster = Cluster::build(spec, IdOrder::as_listed);
    for (const auto policy : testing_support::all_policies()) {
        const auto found = preempt_gang(cluster, pods, {.policy = policy});
        REQUIRE(found.decision);
        CHECK(found.proven);
        CHECK(found.decision->victims.empty());
        CHECK(!found.decision->pods[3].score);
        CHECK(cluster.name(found.decision->pods[3].node) == "n1");
        CHECK(verify::plan(spec, to_spec(to_plan(*found.decision, pods), cluster)).ok);
    }
    spec.nodes[0].failed_gpus = {6, 7};
    spec.tasks[1].gpu_count = 4;  // 15 GPUs on 14
    cluster = Cluster::build(spec, IdOrder::as_listed);
    const auto found = preempt_gang(cluster, pods);
    REQUIRE(found.decision);
    CHECK(names(cluster, found.decision->victims) == std::vector<std::string>{"v"});
    CHECK(found.proven);
}

TEST_CASE("a joint placement of one shape with local cores is not ruled out as proven") {
    // The first pod takes both GPUs beside the cores, though the second one could then run nowhere.
    ClusterSpec spec;
    NodeSpec node{.name = "n", .gpu_count = 4, .cpu_milli = 8000, .memory_mib = 100};
    node.hardware = Hardware{"", {{0, 8, 0b0011}, {0, 0, 0b1100}}};
    spec.nodes = {node};
    for (const auto* name : {"p0", "p1"}) {
        spec.tasks.push_back(pending(name, 2, 10));
        spec.tasks.back().cpu_milli = 4000;
        spec.tasks.back().memory_mib = 0;
        spec.tasks.back().cpu_local = true;
    }
    const auto cluster = Cluster::build(spec, IdOrder::as_listed);
    const std::vector<TaskId> pods{TaskId{0}, TaskId{1}};
    const auto found = preempt_gang(cluster, pods);
    CHECK(found.proven == found.decision.has_value());
}
