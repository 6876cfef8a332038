// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/model/model.hpp>

using namespace gpusched;

TEST_CASE("A job can be bound to one node", "[model]") {
    ClusterSpec spec;
    for (const auto* name : {"n0", "n1"})
        spec.nodes.push_back({.name = name, .gpu_count = 0, .cpu_milli = 4000, .memory_mib = 4000});
    for (const auto* name : {"a", "b"}) {
        TaskSpec task{.name = name, .job = "j", .cpu_milli = 1000, .memory_mib = 1000};
        task.network_affinity = NetworkAffinity{node_level, NetworkMode::required};
        spec.tasks.push_back(task);
    }
    spec.tasks[0].node = "n0";

    const auto cluster = Cluster::build(spec);
    const auto b = cluster.find_task("b");
    CHECK(find_obstacle(cluster, b, cluster.find_node("n0")) == Obstacle::none);
    CHECK(find_obstacle(cluster, b, cluster.find_node("n1")) == Obstacle::network);

    spec.tasks[1].network_affinity->level = -2;
    CHECK_THROWS_MESSAGE(Cluster::build(spec), InvalidInput, "network_affinity level -2 \"node\" 0 15");
}
