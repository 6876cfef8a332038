// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/allocation/allocation.hpp>
#include <gpusched/verify/plan.hpp>

using namespace gpusched;
using namespace gpusched::allocation;

namespace {

NodeSpec node(const std::string& name, std::vector<std::string> network, std::int64_t gpus = 8) {
    NodeSpec n{.name = name, .gpu_model = "A", .gpu_count = gpus, .cpu_milli = 64'000, .memory_mib = 65'536};
    n.network = std::move(network);
    return n;
}

PodRequest pods(std::int64_t count, std::int64_t gpus, std::int64_t cpu = 0) {
    PodRequest request{.count = count};
    request.pod.gpu_count = gpus;
    request.pod.cpu_milli = cpu;
    return request;
}

/// Aggregation switches g0 and g1; access switches a (2 nodes), b (1), c (3) with an uneven tree; one node nobody knows.
ClusterSpec uneven() {
    ClusterSpec spec;
    spec.nodes = {node("a0", {"g0", "a"}), node("a1", {"g0", "a"}), node("b0", {"g0", "b"}),
                  node("c0", {"g1", "c"}), node("c1", {"g1", "c"}), node("c2", {"g1", "c"}),
                  node("lost", {})};
    return spec;
}

std::string text(const ClusterWithJob& with, const Allocation& found) {
    std::string out;
    for (const auto& share : found.per_domain)
        out += with.cluster.inventory().domain_name(found.level, share.domain) + " " +
               std::to_string(share.gpu_milli / 1000) + " ";
    return out;
}

}  // namespace

TEST_CASE("a gang goes under as few switches as it can") {
    const auto with = with_job(Cluster::build(uneven()), {"job", {pods(4, 8)}});
    const auto found = allocate(with.cluster, with.pods);
    REQUIRE(found.placed);
    CHECK(found.level == 1);
    CHECK(found.proven);
    CHECK(text(with, found) == "b 8 c 24 ");  // the last pod on the tightest switch, of which the first
    CHECK(found.entropy == Catch::Approx(-0.75 * std::log(0.75) - 0.25 * std::log(0.25)));
    CHECK(found.pods.size() == 4);
    CHECK(verify::plan(with.cluster.to_spec(), to_spec(to_plan(found), with.cluster)).ok);

    SECTION("the node of unknown position is a domain of its own") {
        const auto big = with_job(Cluster::build(uneven()), {"job", {pods(7, 8)}});
        CHECK(text(big, allocate(big.cluster, big.pods)) == "a 16 b 8 c 24 lost 8 ");
        CHECK(text(big, allocate(big.cluster, big.pods, {.level = 0})) == "g0 24 g1 24 lost 8 ");
    }
    SECTION("Algorithm 2 takes the first switch first") {
        const auto literal = allocate(with.cluster, with.pods, {.policy = AllocatePolicy::entropy});
        CHECK(text(with, literal) == "a 16 b 8 c 8 ");
        CHECK_FALSE(literal.proven);
    }
    SECTION("capacity is counted pod by pod") {
        auto spec = uneven();
        spec.nodes[3].failed_gpus = {0};
        spec.nodes[4].cpu_milli = 7'999;
        const auto less = with_job(Cluster::build(spec), {"job", {pods(2, 8, 8'000)}});
        CHECK(text(less, allocate(less.cluster, less.pods)) == "a 16 ");
        const auto sevens = with_job(Cluster::build(spec), {"job", {pods(3, 7)}});
        CHECK(text(sevens, allocate(sevens.cluster, sevens.pods)) == "c 21 ");
    }
}

TEST_CASE("levels: required and preferred") {
    const auto cluster = Cluster::build(uneven());
    const auto with = with_job(cluster, {"job", {pods(3, 8)}});
    CHECK(text(with, allocate(with.cluster, with.pods, {.mode = NetworkMode::required})) == "c 24 ");
    auto four = with_job(cluster, {"job", {pods(4, 8)}});
    const auto refused = allocate(four.cluster, four.pods, {.mode = NetworkMode::required});
    CHECK_FALSE(refused.placed);
    CHECK(refused.proven);
    CHECK(refused.obstacle == Obstacle::network);
    CHECK_THAT(refused.reason, Mentions("network: one domain of network level 1 'c' closest holds 3 of the 4 "
                                        "pods like 'job-0', all domains 7"));
    CHECK(refused.pods.empty());
    // Within one aggregation switch, though least entropy alone would mix them.
    auto two = uneven();
    two.nodes[5].schedulable = false;  // c: 2 nodes
    four = with_job(Cluster::build(two), {"job", {pods(3, 8)}});
    CHECK(text(four, allocate(four.cluster, four.pods, {.further = {{0, NetworkMode::required}}})) ==
          "a 16 b 8 ");
    // Ties: `lost` is as tight as b, and c as large as a.
    two.nodes[2].network = {"g1", "b"};
    four = with_job(Cluster::build(two), {"job", {pods(3, 8)}});
    CHECK(text(four, allocate(four.cluster, four.pods)) == "a 16 b 8 ");
    CHECK(text(four, allocate(four.cluster, four.pods, {.further = {{0, NetworkMode::preferred}}})) ==
          "b 8 c 16 ");
    CHECK_THROWS_MESSAGE(
        allocate(four.cluster, four.pods, {.level = 0, .further = {{1, NetworkMode::preferred}}}),
        InvalidInput, "further: preferred level 1; expected levels above 0");
}

TEST_CASE("the pods' own constraints bind") {
    auto request = pods(4, 8);
    request.pod.network_affinity = NetworkAffinity{1, NetworkMode::required};
    auto with = with_job(Cluster::build(uneven()), {"job", {request}});
    CHECK(allocate(with.cluster, with.pods).obstacle == Obstacle::network);
    CHECK(allocate(with.cluster, with.pods, {.mode = NetworkMode::preferred}).obstacle == Obstacle::network);
    request.count = 3;
    with = with_job(Cluster::build(uneven()), {"job", {request}});
    CHECK(allocate(with.cluster, with.pods).entropy == 0);
    request.count = 4;
    request.pod.network_affinity = NetworkAffinity{0, NetworkMode::preferred};
    with = with_job(Cluster::build(uneven()), {"job", {request}});
    CHECK(allocate(with.cluster, with.pods).level == 0);
    request.pod.network_affinity.reset();
    request.pod.affinity = {{"near", 1}};
    with = with_job(Cluster::build(uneven()), {"job", {request}});
    CHECK(allocate(with.cluster, with.pods).obstacle == Obstacle::affinity);
}

TEST_CASE("the binding constraint is named with figures") {
    const auto refused = [](const ClusterSpec& spec, PodRequest request) {
        const auto with = with_job(Cluster::build(spec), {"job", {std::move(request)}});
        const auto found = allocate(with.cluster, with.pods);
        CHECK_FALSE(found.placed);
        CHECK(found.proven);
        return found.reason;
    };
    const std::string of = " of the 8 pods like 'job-0'";
    CHECK_THAT(refused(uneven(), pods(8, 8)), Mentions("too few idle GPUs: hold 7" + of));
    CHECK_THAT(refused(uneven(), pods(8, 1, 65'000)),
               Mentions("too few free cores: hold 0" + of + "; 7 nodes pass every other constraint"));
    auto request = pods(8, 4);
    request.pod.gpu_models = {"B"};
    auto spec = uneven();
    spec.nodes.push_back(node("b8", {"g1", "c"}));
    spec.nodes.back().gpu_model = "B";
    // The model of the other nodes is no constraint to remove while its own nodes are full.
    CHECK_THAT(refused(spec, request), Mentions("too few idle GPUs: hold 2" + of + "; then 1 node 'b8'"));
    for (auto& n : spec.nodes) n.schedulable = n.name == "a0";
    CHECK_THAT(refused(spec, pods(8, 4)), Mentions("cordoned: hold 2" + of));
    // A cordon is not to blame if the pods may not run on the cordoned node anyway.
    auto both = uneven();
    both.nodes = {both.nodes[0], both.nodes[1]};
    both.nodes[0].labels["pool"] = "a";
    both.nodes[0].failed_gpus = {0};
    both.nodes[1].schedulable = false;
    request = pods(1, 8);
    request.pod.node_selector["pool"] = "a";
    CHECK_THAT(refused(both, request), Mentions("failed GPUs: no node takes pod 'job-0' 7 of 8 are healthy"));
    // Uncordoning 7 nodes is not enough for the 8 other pods, but still what most nodes lack.
    CHECK_THAT(refused(spec, pods(9, 8)), Mentions("cordoned: hold 1 of the 9 pods like 'job-0'; then"));
    request = pods(8, 1);
    request.pod.anti_affinity = {{"apart", node_level, 1}};
    CHECK_THAT(refused(uneven(), request), Mentions("anti-affinity: group constraints hold 7" + of));
    request = pods(8, 4);
    request.pod.hardware_affinity = {{HardwareLevel::numa, HardwareQos::guaranteed}};
    CHECK_THAT(refused(uneven(), request), Mentions("no GPUs close enough together: hold 0" + of));
}

TEST_CASE("the binding constraints are named once, and each in its own words") {
    const Taint cordon{.key = "node.kubernetes.io/unschedulable", .effect = "NoSchedule"};
    const Taint not_ready{.key = "node.kubernetes.io/not-ready", .effect = "NoSchedule"};
    auto closed = node("n0", {});
    closed.schedulable = false;
    closed.taints = {cordon, not_ready};
    auto lacking = pods(1, 1);
    lacking.pod.resources = {{"a", 1}, {"b", 1}, {"c", 1}};
    struct Case {
        std::string name;
        std::vector<NodeSpec> nodes;
        PodRequest request;
        std::vector<std::string> mentioned;
        std::string once;  // in the reason
    };
    for (const auto& c : {
             Case{"no nodes", {}, pods(1, 1), {"the cluster has no nodes"}, "nodes"},
             Case{"three named resources",
                  {node("n0", {})},
                  lacking,
                  {"too little of a, too little of b and too little of c: no node takes 'n0'"},
                  "too little of a,"},
             Case{"cordoned and not ready",
                  {closed},
                  pods(1, 1),
                  {"the node is cordoned", "not ready: node.kubernetes.io/not-ready"},
                  "the node is"},
         }) {
        INFO(c.name);
        ClusterSpec spec;
        spec.nodes = c.nodes;
        const auto with = with_job(Cluster::build(spec), {"job", {c.request}});
        const auto found = allocate(with.cluster, with.pods);
        INFO(found.reason);
        CHECK_FALSE(found.placed);
        CHECK(found.proven);
        for (const auto& words : c.mentioned) CHECK_THAT(found.reason, Mentions(words));
        const auto at = found.reason.find(c.once);
        REQUIRE(at != std::string::npos);
        CHECK(found.reason.find(c.once, at + 1) == std::string::npos);
    }
}

TEST_CASE("placing in the cluster itself, all or nothing") {
    auto with = with_job(Cluster::build(uneven()), {"job", {pods(9, 4)}});
    auto cluster = with.cluster;
    const auto before = cluster.checkpoint();
    const auto found = place_gang(cluster, with.pods);
    REQUIRE(found.placed);
    for (const auto& p : found.pods) {
        CHECK(cluster.node_of(p.task) == p.node);
        CHECK(cluster.gpus_of(p.task) == p.gpus);
    }
    CHECK(cluster.same_placement(apply(with.cluster, to_plan(found))));
    CHECK_THROWS_MESSAGE(place_gang(cluster, with.pods), InvalidInput,
                         "pods: 'job-0'; expected pending runs on node");
    cluster.rollback(before);
    CHECK(cluster.same_placement(with.cluster));
    CHECK_FALSE(place_gang(cluster, with.pods, {.mode = NetworkMode::required, .further = {}}).placed);
    CHECK(cluster.checkpoint() == before);
    CHECK(pending_pods(cluster, "job") == with.pods);
    CHECK_THROWS_MESSAGE(pending_pods(cluster, "none"), InvalidInput,
                         "job: 'none'; expected job or task of the cluster");
    CHECK(pending_pods(cluster, cluster.name(with.pods.front())) == std::vector{with.pods.front()});
}

TEST_CASE("groups without traffic do not distinguish equal pods") {
    auto two = uneven();
    two.nodes[2].network = {"g1", "b"};
    two.nodes[5].schedulable = false;
    const auto four = with_job(Cluster::build(two), {"job", {pods(3, 8)}});
    AllocateOptions options{.further = {{0, NetworkMode::preferred}}};
    const auto alike = allocate(four.cluster, four.pods, options);
    CHECK(text(four, alike) == "b 8 c 16 ");
    CHECK(alike.proven);
    options.groups = {0, 1, 2};
    const auto grouped = allocate(four.cluster, four.pods, options);
    CHECK(grouped.pods == alike.pods);
    CHECK(grouped.proven);
}

TEST_CASE("groups that talk to each other share switches") {
    // Prefill on model B, decode on model A; each switch has both, each group fits under one switch of its own.
    ClusterSpec spec;
    for (const char* s : {"s0", "s1"}) {
        for (int i = 0; i < 2; ++i) spec.nodes.push_back(node(std::string(s) + "a" + std::to_string(i), {s}));
        spec.nodes.push_back(node(std::string(s) + "b", {s}));
        spec.nodes.back().gpu_model = "B";
    }
    auto prefill = pods(2, 4), decode = pods(3, 8);
    prefill.pod.gpu_models = {"B"};
    decode.pod.gpu_models = {"A"};
    auto with = with_job(Cluster::build(spec), {"pd", {prefill, decode}});
    const auto near = allocate(with.cluster, with.pods, {.groups = with.groups, .traffic = {{0, 6}, {6, 0}}});
    REQUIRE(near.placed);
    CHECK(near.cross_traffic == Catch::Approx(2));  // decode needs both switches: one third of it is away
    CHECK(verify::plan(with.cluster.to_spec(), to_spec(to_plan(near), with.cluster)).ok);
    decode.count = 2;
    with = with_job(Cluster::build(spec), {"pd", {prefill, decode}});
    const auto together =
        allocate(with.cluster, with.pods, {.mode = NetworkMode::required, .groups = with.groups});
    REQUIRE(together.placed);
    CHECK(together.entropy == 0);
    CHECK(together.proven);
    prefill.count = 5;
    with = with_job(Cluster::build(spec), {"pd", {prefill, decode}});
    const auto refused = allocate(with.cluster, with.pods);
    CHECK_FALSE(refused.placed);
    CHECK(refused.proven);
    CHECK_THAT(refused.reason, Mentions("too few idle GPUs: hold 4 of the 5 pods like 'pd-0'"));
}

TEST_CASE("bad arguments of allocate") {
    const auto with = with_job(Cluster::build(uneven()), {"job", {pods(2, 8)}});
    const auto& c = with.cluster;
    using Pods = std::vector<TaskId>;
    CHECK_THROWS_MESSAGE(allocate(c, Pods{}), InvalidInput, "pods: none");
    CHECK_THROWS_MESSAGE(allocate(c, Pods{TaskId{9}}), InvalidInput, "pods: #9; expected cluster's 2");
    CHECK_THROWS_MESSAGE(allocate(c, Pods{TaskId{0}, TaskId{0}}), InvalidInput, "pods: 'job-0' listed twice");
    CHECK_THROWS_MESSAGE(allocate(c, with.pods, {.level = 2}), InvalidInput, "level: 2; expected -1 1");
    CHECK_THROWS_MESSAGE(allocate(c, with.pods, {.further = {{7, NetworkMode::required}}}), InvalidInput,
                         "level: 7; expected -1 1");
    CHECK_THROWS_MESSAGE(allocate(c, with.pods, {.groups = {0}}), InvalidInput,
                         "groups: 1 entries; expected 2");
    CHECK_THROWS_MESSAGE(allocate(c, with.pods, {.groups = {0, 2}}), InvalidInput, "groups: 2; expected 0 1");
    CHECK_THROWS_MESSAGE(allocate(c, with.pods, {.traffic = {{1, 2}, {2, 1}}}), InvalidInput,
                         "traffic: 2 rows; expected 1");
    CHECK_THROWS_MESSAGE(allocate(c, with.pods, {.traffic = {{-1}}}), InvalidInput,
                         "traffic: -1; expected 0");
    CHECK_THROWS_MESSAGE(allocate(c, with.pods, {.groups = {0, 1}, .traffic = {{0, 2}, {1, 0}}}),
                         InvalidInput, "traffic: 1; expected 2 other direction");
    CHECK_THROWS_MESSAGE(with_job(c, {"job", {pods(1, 1)}}), InvalidInput,
                         "job: name: 'job'; expected no job of the cluster");
    CHECK_THROWS_MESSAGE(with_job(c, {"other", {}}), InvalidInput, "job 'other': pods: none");
    CHECK_THROWS_MESSAGE(with_job(c, {"other", {pods(0, 1)}}), InvalidInput, "count: 0; expected 1");
    CHECK_THROWS_MESSAGE(with_job(c, {"other", {pods(1, 99)}}), InvalidInput, "gpu_count: 99; expected 0 64");
}

TEST_CASE("shapes with only one joint placement are placed; others are refused with the binding constraint") {
    ClusterSpec spec;
    spec.nodes = {node("a", {}, 5), node("b", {}, 8), node("e", {}, 3)};
    const auto cluster = Cluster::build(spec);
    const auto with = with_job(cluster, {"job", {pods(2, 4), pods(1, 5)}});
    const auto found = allocate(with.cluster, with.pods, {.groups = with.groups});
    INFO(found.reason);
    REQUIRE(found.placed);
    CHECK(with.cluster.name(found.pods[2].node) == "a");
    CHECK(verify::plan(with.cluster.to_spec(), to_spec(to_plan(found), with.cluster)).ok);

    const auto more = with_job(cluster, {"job", {pods(2, 5), pods(1, 4)}});
    const auto refused = allocate(more.cluster, more.pods, {.groups = more.groups});
    CHECK_FALSE(refused.placed);
    CHECK(refused.proven);
    CHECK(refused.obstacle == Obstacle::gpu);
    INFO(refused.reason);
    CHECK_THAT(refused.reason,
               Mentions("too few idle GPUs: no node takes pod 'job-2' other shapes placed first"));

    // 8 = 5 + 3 and 7 = 3 + 3: the pod of 5 must not take the tightest node. Under the other switch nothing would do.
    spec.nodes = {node("a", {"s"}, 7), node("b", {"s"}, 8), node("c", {"t"}, 7), node("d", {"t"}, 7)};
    const auto under = with_job(Cluster::build(spec), {"job", {pods(3, 3), pods(1, 5)}});
    const AllocateOptions required{.level = 0, .mode = NetworkMode::required, .groups = under.groups};
    const auto together = allocate(under.cluster, under.pods, required);
    INFO(together.reason);
    REQUIRE(together.placed);
    CHECK(text(under, together) == "s 14 ");
    CHECK(together.proven);
    spec.nodes[1].gpu_count = 7;
    const auto apart = with_job(Cluster::build(spec), {"job", {pods(3, 3), pods(1, 5)}});
    const auto nowhere = allocate(apart.cluster, apart.pods, required);
    CHECK_FALSE(nowhere.placed);
    CHECK(nowhere.proven);
    CHECK_THAT(nowhere.reason,
               Mentions("network: whole cluster holds all pods but no domain of network level 0 does"));
}

TEST_CASE("a job that is not in the snapshot brings its least numbers along") {
    JobRequest job{"job", {pods(1, 8), pods(3, 2)}, 3, {{"leader", 1}, {"worker", 2}}};
    job.pods[0].pod.subgroup = "leader";
    job.pods[1].pod.subgroup = "worker";
    const auto with = with_job(Cluster::build(uneven()), job);
    REQUIRE(with.cluster.to_spec().jobs ==
            std::vector<JobSpec>{{.name = "job", .min_members = 3, .subgroups = job.subgroups}});
    CHECK(with.cluster.task_spec(with.pods[0]).subgroup == "leader");
    CHECK(with.cluster.task_spec(with.pods[3]).subgroup == "worker");
    CHECK(allocate(with.cluster, with.pods).placed);
    job.pods[1].pod.subgroup = "boss";
    CHECK_THROWS_MESSAGE(with_job(Cluster::build(uneven()), job), InvalidInput,
                         "task 'job-1': subgroup: 'boss'; expected job 'job' lists");
    job.subgroups.clear();
    job.min_members = -1;
    CHECK_THROWS_MESSAGE(with_job(Cluster::build(uneven()), job), InvalidInput,
                         "job 'job': min_members: -1;");
}

TEST_CASE("a refusal is proven for one pod, and if the nodes without groups hold too few") {
    ClusterSpec spec;
    spec.nodes = {node("a", {}), node("b", {})};
    for (const char* const on : {"a", "b"}) {
        TaskSpec task{
            .name = std::string("on-") + on, .gpu_count = 1, .node = on, .gpus = {0}, .groups = {"g"}};
        spec.tasks.push_back(task);
    }
    struct Case {
        std::int64_t pods, gpus;
        bool avoids, placed, proven;
    };
    for (const auto& [count, gpus, avoids, placed, proven] :
         {Case{1, 1, true, false, true}, Case{1, 8, false, false, true}, Case{1, 7, false, true, true},
          Case{3, 7, false, false, true}, Case{2, 1, true, false, false}}) {
        INFO(count << " of " << gpus << ", avoids " << avoids);
        auto request = pods(count, gpus);
        if (avoids)
            request.pod.avoid = {{"g", node_level}};
        else
            request.pod.near = {{"g", node_level}};
        const auto with = with_job(Cluster::build(spec), {"job", {request}});
        const auto found = allocate(with.cluster, with.pods);
        CHECK(found.placed == placed);
        CHECK(found.proven == proven);
        CHECK((found.reason.find("not proven") != std::string::npos) == !proven);
    }
}
