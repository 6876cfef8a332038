// SPDX-License-Identifier: Apache-2.0
// JobEntropies as a follower: what it answers while the network changes under it.
#include "support/catch.hpp"

#include <gpusched/fragmentation/fragmentation.hpp>
#include <gpusched/model/follower.hpp>

using namespace gpusched;

TEST_CASE("job entropies at a level that the cluster has lost are refused each time, and come back with it") {
    const auto node = [](const char* name, std::vector<std::string> network) {
        return NodeSpec{.name = name, .gpu_count = 1, .network = std::move(network)};
    };
    const auto task = [](const char* name, const char* home) {
        return TaskSpec{.name = name, .job = "j", .gpu_count = 1, .node = home, .gpus = {0}};
    };
    auto cluster = Cluster::build(
        {.nodes = {node("a", {"r", "s"}), node("b", {"r", "t"})}, .tasks = {task("x", "a"), task("y", "b")}});
    cluster.keep_events();
    Followed<fragmentation::JobEntropies> entropies(fragmentation::JobEntropies{Level{1}});
    const auto apart = entropies.of(cluster).entropy_of(JobId{0});
    CHECK(apart > 0);
    for (const char* name : {"a", "b"})
        cluster.update_node(cluster.handle(cluster.find_node(name)), node(name, {"r"}));
    for (int question = 0; question < 3; ++question)
        CHECK_THROWS_AS((void)entropies.of(cluster), InvalidInput);
    cluster.update_node(cluster.handle(cluster.find_node("a")), node("a", {"r", "s"}));
    CHECK(entropies.of(cluster).entropy_of(JobId{0}) == apart);
}
