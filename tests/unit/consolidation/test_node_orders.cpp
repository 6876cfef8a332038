// SPDX-License-Identifier: Apache-2.0
// The keys of the node orders, computed by hand.
#include "example_clusters.hpp"

using namespace testing_support;

TEST_CASE("the node orders of demand count GPUs, cores and pods, for the size of the node") {
    // On each node one pod that holds a GPU and a core.
    const ClusterSpec spec{.nodes = {node("a", 1), node("b", 8), node("c", 16), node("d", 0)},
                           .tasks = {task("x", "a", {0}), task("y", "b", {0}), task("z", "c", {0})}};
    const auto cluster = Cluster::build(spec);
    const auto key = [&](const auto& order, const char* name) {
        return order(cluster, cluster.find_node(name));
    };
    // 1000 for the GPU, 1000 for the pod, and a sixteenth of the core.
    for (const auto* name : {"a", "b", "c"}) CHECK(key(con::LeastDemand{}, name) == 2062);
    CHECK(key(con::LeastDemand{}, "d") == 0);
    // Over the cube roots 1, 2 and 2.519; nodes without GPUs last.
    CHECK(key(con::LeastDemandForSize{}, "a") == 2062);
    CHECK(key(con::LeastDemandForSize{}, "b") == 1031);
    CHECK(key(con::LeastDemandForSize{}, "c") == 818);
    CHECK(key(con::LeastDemandForSize{}, "d") > 1'000'000'000'000'000'000);
}

TEST_CASE("fewest pods count tasks, lowest utilisation counts GPUs in use of those that the node has") {
    auto quarter = task("w", "b", {1});
    quarter.gpu_share_milli = 250;
    auto daemon = task("agent", "a", {});
    daemon.gpu_count = 0;
    daemon.daemon = true;
    const ClusterSpec spec{
        .nodes = {node("a", 1), node("b", 8), node("c", 4), node("d", 0)},
        .tasks = {task("x", "a", {0}), task("y", "b", {0}), quarter, task("z", "c", {0, 2, 3}), daemon}};
    const auto cluster = Cluster::build(spec);
    const auto key = [&](const auto& order, const char* name) {
        return order(cluster, cluster.find_node(name));
    };
    CHECK(key(con::FewestPods{}, "a") == 1);
    CHECK(key(con::FewestPods{}, "b") == 2);
    CHECK(key(con::FewestPods{}, "d") == 0);
    CHECK(key(con::LowestUtilisation{}, "a") == 1'000'000);
    CHECK(key(con::LowestUtilisation{}, "b") == 156'250);  // 1.25 of 8
    CHECK(key(con::LowestUtilisation{}, "c") == 750'000);
    CHECK(key(con::LowestUtilisation{}, "d") == 0);
}
