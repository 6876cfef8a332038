// SPDX-License-Identifier: Apache-2.0
// Gangs without a place: the constraint that is named is one without which they have one.
#include "support/catch.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;

namespace {

NodeSpec node_with(const std::string& name, std::int64_t gpus, std::int64_t cpu, std::int64_t memory,
                   std::vector<std::string> network = {}) {
    NodeSpec node{.name = name,
                  .gpu_count = gpus,
                  .cpu_milli = cpu,
                  .memory_mib = memory,
                  .network = std::move(network)};
    return node;
}

TaskSpec pod_of(const std::string& name, std::int64_t gpus, std::int64_t cpu = 0, std::int64_t memory = 0) {
    TaskSpec pod{.name = name, .job = "gang", .cpu_milli = cpu, .memory_mib = memory, .gpu_count = gpus};
    return pod;
}

Allocation refused(const ClusterSpec& spec, const AllocateOptions& options = {}) {
    const auto cluster = Cluster::build(spec);
    auto found = allocate(cluster, pending_pods(cluster, "gang"), options);
    CHECK_FALSE(found.placed);
    CHECK(found.proven);
    return found;
}

}  // namespace

TEST_CASE("a required level is named if the whole cluster could hold the gang", "[allocation]") {
    // They fit in one way only: the pod of 2 GPUs on b, one of 1 GPU on c, the others on a.
    ClusterSpec spec;
    spec.nodes = {node_with("a", 3, 4, 4), node_with("b", 2, 1, 1), node_with("c", 1, 2, 2)};
    spec.tasks = {pod_of("p0", 2, 1, 1), pod_of("p1", 1, 2, 2), pod_of("p2", 1, 2, 2), pod_of("p3", 1, 2, 2)};
    AllocateOptions options;
    options.level = node_level;
    const auto cluster = Cluster::build(spec);
    CHECK(allocate(cluster, pending_pods(cluster, "gang"), options).placed);
    options.mode = NetworkMode::required;
    const auto found = refused(spec, options);
    INFO(found.reason);
    CHECK(found.obstacle == Obstacle::network);
    CHECK_THAT(found.reason, Mentions("network: whole cluster holds all pods but no node does"));
}

TEST_CASE("members that run in two domains are no matter of affinity", "[allocation]") {
    ClusterSpec spec;
    spec.nodes = {node_with("a", 4, 10, 10, {"s0"}), node_with("b", 4, 10, 10, {"s1"})};
    spec.tasks = {pod_of("r0", 1), pod_of("r1", 1), pod_of("p0", 1), pod_of("p1", 1)};
    for (std::size_t r = 0; r < 2; ++r) {
        spec.tasks[r].node = spec.nodes[r].name;
        spec.tasks[r].gpus = {0};
        spec.tasks[2 + r].network_affinity = NetworkAffinity{0, NetworkMode::required};
    }
    const auto alike = refused(spec);
    INFO(alike.reason);
    CHECK(alike.obstacle == Obstacle::network);
    spec.tasks[3].cpu_milli = 1;  // two shapes
    const auto several = refused(spec);
    INFO(several.reason);
    CHECK(several.obstacle == Obstacle::network);
}

TEST_CASE("of limits and affinity the one is named without which the pods fit", "[allocation]") {
    ClusterSpec spec;
    spec.nodes = {node_with("a", 2, 10, 10, {"s", "x"}), node_with("b", 1, 10, 10, {"s", "y"})};
    for (const char* name : {"p0", "p1", "p2"}) {
        spec.tasks.push_back(pod_of(name, 1));
        spec.tasks.back().anti_affinity = {{"few", 1, 2}};
        spec.tasks.back().affinity = {{"near", 1}};
    }
    const auto near = refused(spec);  // 2 + 1 would do
    INFO(near.reason);
    CHECK(near.obstacle == Obstacle::affinity);
    spec.nodes[0].gpu_count = 3;
    for (auto& task : spec.tasks) task.anti_affinity[0].level = 0;
    const auto few = refused(spec);  // all three on a
    INFO(few.reason);
    CHECK(few.obstacle == Obstacle::anti_affinity);
    spec.tasks[2].cpu_milli = 1;
    CHECK(refused(spec).obstacle == Obstacle::anti_affinity);
}

TEST_CASE("a domain that holds all pods of a shape is not reported as closest", "[allocation]") {
    ClusterSpec spec;
    spec.nodes = {node_with("a", 8, 10, 10, {"s0"}), node_with("b", 7, 10, 10, {"s1"})};
    spec.tasks = {pod_of("p0", 4), pod_of("p1", 4), pod_of("p2", 3), pod_of("p3", 3), pod_of("p4", 2)};
    for (auto& task : spec.tasks) task.network_affinity = NetworkAffinity{0, NetworkMode::required};
    const auto found = refused(spec);
    CHECK_THAT(found.reason,
               Mentions("network: one domain of network level 0 does not hold all of the 2 pods like 'p2' "
                        "other shapes"));
}
