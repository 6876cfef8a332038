// SPDX-License-Identifier: Apache-2.0
// Gangs of several shapes: the caller's limits, jobs that must stay together, groups that trials misjudge, deep searches.
#include "support/catch.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;

namespace {

NodeSpec node_with(const std::string& name, std::int64_t gpus, std::vector<std::string> network) {
    NodeSpec node{.name = name,
                  .gpu_count = gpus,
                  .cpu_milli = 100'000,
                  .memory_mib = 100,
                  .network = std::move(network)};
    return node;
}

TaskSpec pod_of(const std::string& name, const std::string& job, std::int64_t gpus, std::int64_t cpu = 0) {
    TaskSpec pod{.name = name, .job = job, .cpu_milli = cpu};
    pod.gpu_count = gpus;
    return pod;
}

std::vector<TaskId> tasks_of(const Cluster& cluster, const std::vector<std::string>& names) {
    std::vector<TaskId> tasks;
    for (const auto& name : names) tasks.push_back(cluster.find_task(name));
    return tasks;
}

/// Pods that differ in cores, three to a node by GPUs, whose cores just fill the nodes: too hard for the exact search.
ClusterWithJob hard_gang(bool tied) {
    Rng rng(3);
    ClusterSpec spec;
    JobRequest job{"gang", {}};
    std::int64_t left = 15 * 1000;
    for (int i = 0; i < 45; ++i) {
        if (i % 3 == 0) {
            spec.nodes.push_back(node_with("n" + std::to_string(i / 3), 16, {}));
            spec.nodes.back().cpu_milli = 1000;
            Hardware hardware;
            for (int g = 0; g < 16; ++g) hardware.numa_nodes.push_back({g / 8, 8, gpu_bit(g)});
            if (tied) spec.nodes.back().hardware = hardware;
        }
        PodRequest group{.count = 1};
        group.pod.gpu_count = 5;
        group.pod.cpu_milli = i < 44 ? 270 + i % 2 * 60 + rng.between(0, 66) : left;
        left -= group.pod.cpu_milli;
        if (tied) group.pod.anti_affinity = {{"few", node_level, 3}};
        job.pods.push_back(group);
    }
    return with_job(Cluster::build(spec), job);
}

}  // namespace

TEST_CASE("a time limit ends the exact search, and the result reports it") {
    for (const bool tied : {false, true}) {
        const auto with = hard_gang(tied);
        const ManualClock clock(1'000'000);  // a millisecond at every look
        const Context context{.clock = &clock};
        const auto at_once =
            allocate(with.cluster, with.pods, {.groups = with.groups, .time_limit = 0}, context);
        REQUIRE_FALSE(at_once.placed);
        CHECK_FALSE(at_once.proven);
        CHECK(at_once.stop_reason == StopReason::time_limit);
        CHECK_THAT(at_once.reason,
                   Mentions("search ended at its time limit, placement may exist (not proven)"));
        const auto soon =
            allocate(with.cluster, with.pods, {.groups = with.groups, .time_limit = 0.005}, context);
        REQUIRE_FALSE(soon.placed);
        CHECK_FALSE(soon.proven);
        CHECK(soon.stop_reason == StopReason::time_limit);
    }
    const auto with = hard_gang(false);
    CHECK_THROWS_MESSAGE(allocate(with.cluster, with.pods, {.time_limit = -1.0}), InvalidInput,
                         "time_limit: -1; expected 0");
}

TEST_CASE("a stop token ends the exact search") {
    const auto with = hard_gang(true);
    std::stop_source stop;
    stop.request_stop();
    const auto found = allocate(with.cluster, with.pods, {.groups = with.groups}, {.stop = stop.get_token()});
    REQUIRE_FALSE(found.placed);
    CHECK_FALSE(found.proven);
    CHECK(found.stop_reason == StopReason::cancelled);
    CHECK_THAT(found.reason, Mentions("search ended when cancelled, placement may exist (not proven)"));
    const std::vector<GangRequest> jobs{{with.pods, {.groups = with.groups}}};
    const auto many = allocate_many(with.cluster, jobs, {}, {.stop = stop.get_token()});
    CHECK(many.stop_reason == StopReason::cancelled);
    CHECK(many.placed == 0);
    CHECK_FALSE(many.proven);
    CHECK_FALSE(many.jobs[0].reason.empty());
    const std::vector<GangRequest> limited{{with.pods, {.time_limit = 1.0}}};
    CHECK_THROWS_MESSAGE(allocate_many(with.cluster, limited), InvalidInput,
                         "time_limit: 1; expected none one limit all jobs");
}

TEST_CASE("without time left a gang is still placed by a simple rule") {
    ClusterSpec spec;
    for (int n = 0; n < 4; ++n)
        spec.nodes.push_back(node_with("n" + std::to_string(n), 4, {"s" + std::to_string(n)}));
    JobRequest job{"gang", {{.count = 3, .pod = pod_of("", "", 2)}, {.count = 3, .pod = pod_of("", "", 1)}}};
    const auto with = with_job(Cluster::build(spec), job);
    const auto found = allocate(with.cluster, with.pods, {.groups = with.groups, .time_limit = 0});
    CHECK(found.placed);
    CHECK(found.proven == (found.stop_reason == StopReason::completed));
}

TEST_CASE("pods without a constraint stay together if another member of their job requires it") {
    ClusterSpec spec;
    spec.nodes = {node_with("n0", 1, {"s0"}), node_with("n1", 2, {"s1"})};
    spec.tasks = {pod_of("one", "gang", 1), pod_of("two", "gang", 2), pod_of("later", "gang", 1)};
    spec.tasks[2].network_affinity = NetworkAffinity{0, NetworkMode::required};
    const auto cluster = Cluster::build(spec);
    const auto found = allocate(cluster, tasks_of(cluster, {"one", "two"}));
    INFO(found.reason);
    REQUIRE_FALSE(found.placed);
    CHECK(found.proven);
    CHECK(found.obstacle == Obstacle::network);
}

TEST_CASE("equal pods of two jobs are bound by their own jobs") {
    ClusterSpec spec;
    spec.nodes = {node_with("n0", 1, {"s0"}), node_with("n1", 8, {"s1"})};
    spec.tasks = {pod_of("b", "second", 1), pod_of("a", "first", 1), pod_of("c", "second", 2),
                  pod_of("runs", "first", 1)};
    for (auto& task : spec.tasks) task.network_affinity = NetworkAffinity{0, NetworkMode::required};
    spec.tasks[3].node = "n0";
    spec.tasks[3].gpus = {0};
    const auto cluster = Cluster::build(spec);
    const auto found = allocate(cluster, tasks_of(cluster, {"b", "a", "c"}));
    INFO(found.reason);
    REQUIRE_FALSE(found.placed);
}

TEST_CASE("a group that must share a node is not judged by the first node that is tried") {
    ClusterSpec spec;
    spec.nodes = {node_with("n1", 2, {"s0"}), node_with("n2", 8, {"s0"}), node_with("n3", 7, {"s1"})};
    JobRequest job{"gang", {{.count = 2, .pod = pod_of("", "", 2)}, {.count = 4, .pod = pod_of("", "", 1)}}};
    job.pods[0].pod.affinity = {{"near", node_level}};
    const auto with = with_job(Cluster::build(spec), job);
    const auto found = allocate(with.cluster, with.pods, {.groups = with.groups});
    REQUIRE(found.placed);
    CHECK(found.entropy == 0);  // all on n2
    CHECK(found.proven);
}

TEST_CASE("further required levels hold for gangs of several shapes") {
    ClusterSpec spec;
    spec.nodes = {node_with("n0", 4, {"x", "s0"}), node_with("n1", 2, {"y", "s1"}),
                  node_with("n2", 3, {"y", "s2"})};
    JobRequest job{"gang", {{.count = 2, .pod = pod_of("", "", 2)}, {.count = 1, .pod = pod_of("", "", 1)}}};
    const auto with = with_job(Cluster::build(spec), job);
    AllocateOptions options{.level = 1, .groups = with.groups};
    const auto on = [&](const Allocation& found, std::size_t pod) { return index(found.pods[pod].node); };
    const auto apart = allocate(with.cluster, with.pods, options);
    REQUIRE(apart.placed);
    CHECK(on(apart, 0) == 0);  // 4 and 1
    CHECK(on(apart, 1) == 0);
    options.further = {{0, NetworkMode::required}};
    const auto within = allocate(with.cluster, with.pods, options);
    REQUIRE(within.placed);  // 2 and 3, all in y
    for (std::size_t pod = 0; pod < 3; ++pod) CHECK(on(within, pod) != 0);
    auto fewer = spec;
    fewer.nodes[2].gpu_count = 2;
    const auto tight = with_job(Cluster::build(fewer), job);
    const auto refused = allocate(tight.cluster, tight.pods, options);
    CHECK_FALSE(refused.placed);
    CHECK(refused.proven);
    CHECK(refused.obstacle == Obstacle::network);
}

TEST_CASE("the exact search is no deeper than its stack") {
    ClusterSpec spec;
    spec.nodes = {node_with("n", 1, {"s"})};
    spec.nodes[0].memory_mib = 1;
    JobRequest job{"gang", {{.count = 60'000, .pod = pod_of("", "", 0, 1)}, {.count = 2, .pod = {}}}};
    job.pods[1].pod.memory_mib = 1;
    for (const bool tied : {true, false}) {
        job.pods[0].pod.anti_affinity.clear();
        if (tied) job.pods[0].pod.anti_affinity = {{"few", node_level, 1'000'000}};
        job.pods[1].pod.gpu_count = tied ? 0 : 1;
        job.pods[1].pod.gpu_share_milli = tied ? 1000 : 400;
        const auto with = with_job(Cluster::build(spec), job);
        const auto found = allocate(with.cluster, with.pods, {.groups = with.groups});
        CHECK_FALSE(found.placed);
    }
}

TEST_CASE("a rack that spread closes at first opens when the other rack holds a pod") {
    ClusterSpec spec;
    spec.nodes = {node_with("n0", 1, {"r0"}), node_with("n1", 1, {"r1"}), node_with("n2", 2, {"r1"})};
    spec.tasks.push_back(pod_of("member", "", 0));
    spec.tasks[0].node = "n0";
    spec.tasks[0].groups = {"g"};
    for (const auto& [name, gpus] : {std::pair{"large", 2}, std::pair{"a", 1}, std::pair{"b", 1}}) {
        auto pod = pod_of(name, "gang", gpus);
        pod.groups = {"g"};
        pod.spread.push_back({.group = "g", .level = 0, .max_skew = 1});
        spec.tasks.push_back(pod);
    }
    const auto cluster = Cluster::build(spec);
    CHECK(allocate(cluster, tasks_of(cluster, {"large", "a", "b"})).placed);
}
