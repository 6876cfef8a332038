// SPDX-License-Identifier: Apache-2.0
#include "support/random_cluster.hpp"

#include <gpusched/fragmentation/fragmentation.hpp>

using namespace gpusched;
using namespace gpusched::fragmentation;

namespace {

NodeSpec node(const std::string& name, int gpus) {
    return {.name = name, .gpu_count = gpus, .cpu_milli = 64'000, .memory_mib = 1'024};
}
TaskSpec task(const std::string& name, int gpus, std::int64_t cpu_milli) {
    return {.name = name, .cpu_milli = cpu_milli, .gpu_count = gpus};
}

}  // namespace

TEST_CASE("a cluster's own shapes are the medians of its tasks' requests, and whole nodes") {
    ClusterSpec spec;
    spec.nodes = {node("small", 2), node("large", 8), node("none", 0)};
    spec.tasks = {task("a", 1, 4'000),  task("b", 1, 9'000),  task("c", 1, 5'000),
                  task("d", 2, 30'000), task("e", 2, 10'000), task("f", 0, 60'000)};
    spec.tasks[0].gpu_share_milli = 300;  // a part of a GPU is asked for as one
    spec.tasks[0].node = "small";         // running and pending tasks count alike
    spec.tasks[0].gpus = {0};
    // Per GPU: 4, 9, 5, 15 and 5 cores.
    const std::vector<Shape> expected{{1, 5'000}, {2, 30'000}, {8, 40'000}};
    CHECK(own_shapes(Cluster::build(spec)) == expected);
    spec.tasks.push_back(task("daemon", 4, 1));
    spec.tasks.back().daemon = true;
    spec.nodes.push_back(node("cordoned", 16));
    spec.nodes.back().schedulable = false;
    CHECK(own_shapes(Cluster::build(spec)) == expected);
    spec.tasks = {};
    CHECK(own_shapes(Cluster::build(spec)) == std::vector<Shape>{{2, 0}, {8, 0}});
    CHECK(own_shapes(Cluster{}) == std::vector<Shape>{{1, 0}});
}

TEST_CASE("a report without shapes is one of the cluster's own") {
    Rng rng(4);
    const auto cluster = Cluster::build(testing_support::random_cluster(rng, {}));
    CHECK(report(cluster) == report(cluster, own_shapes(cluster)));
}

TEST_CASE("the nodes behind a report add up to it") {
    ClusterSpec spec;
    spec.nodes = {node("stranded", 4), node("full", 4), node("more", 4), node("no cpu", 8)};
    spec.tasks = {task("s", 3, 0), task("f", 4, 0), task("m", 2, 0), task("n", 1, 60'000)};
    const std::vector<std::vector<int>> gpus{{0, 1, 2}, {0, 1, 2, 3}, {0, 1}, {0}};
    for (std::size_t i = 0; i < 4; ++i) {
        spec.tasks[i].node = spec.nodes[i].name;
        spec.tasks[i].gpus = gpus[i];
    }
    const auto small = Cluster::build(spec, IdOrder::as_listed);
    CHECK(unusable_nodes(small, {4, 8'000}) ==
          std::vector<UnusableNode>{{NodeId{3}, Cause::insufficient_cpu, 4'000},
                                    {NodeId{2}, Cause::stranded, 2'000},
                                    {NodeId{0}, Cause::stranded, 1'000}});
    CHECK(unusable_nodes(small, {4, 8'000}, {.max_gpus_per_node = 4}).size() == 2);
    CHECK_THROWS_AS(unusable_nodes(small, {0, 0}), InvalidInput);
    CHECK_THROWS_AS(unusable_nodes(small, {1, 0}, {.max_gpus_per_node = 0}), InvalidInput);

    std::size_t listed = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        Rng rng(seed);
        const auto cluster = Cluster::build(testing_support::random_cluster(rng, {.max_gpus = 8}));
        const ReportOptions options{.include_cordoned = rng.chance(0.5)};
        for (const auto& row : report(cluster, options)) {
            std::map<Cause, std::int64_t> sums;
            std::int64_t last = INT64_MAX;
            for (const auto& n : unusable_nodes(cluster, row.shape, options)) {
                CHECK(n.milli <= last);
                last = n.milli;
                sums[n.cause] += n.milli;
                ++listed;
            }
            CHECK(sums[Cause::fractional] == row.fractional_milli);
            CHECK(sums[Cause::stranded] == row.stranded_milli);
            CHECK(sums[Cause::insufficient_cpu] == row.insufficient_cpu_milli);
        }
    }
    CHECK(listed > 1'000);
}
