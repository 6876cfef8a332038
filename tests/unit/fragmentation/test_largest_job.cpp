// SPDX-License-Identifier: Apache-2.0
#include "random_snapshot.hpp"

using namespace gpusched;
using namespace gpusched::fragmentation;
using namespace fragmentation_test;

static_assert(NodeMetric<LargestJobMetric>);

TEST_CASE("the largest job by hand") {
    ClusterSpec spec;
    spec.nodes.push_back(node("a", "A", 8, 96, {"c", "s0"}));
    spec.nodes.push_back(node("b", "A", 8, 72, {"c", "s1"}));
    spec.nodes.push_back(node("c", "B", 4, 48, {"c", "s1"}));
    spec.nodes.push_back(node("d", "B", 4, 48, {"d", "s2"}));
    spec.nodes.push_back(node("e", "C", 1, 8, {}));
    const auto cluster = Cluster::build(spec);
    using Rows = std::vector<LargestJobRow>;
    CHECK(
        largest_job(cluster) ==
        Rows{{"A", 14, 8, "c", "s0"}, {"B", 4, 4, "c", "s1"}, {"C", 0, 0, "", ""}, {"*", 18, 10, "c", "s1"}});
    CHECK(largest_job(cluster, {.gpus_per_pod = 8})[0] == LargestJobRow{"A", 8, 8, "c", "s0"});
    CHECK(largest_job(cluster, {.gpus_per_pod = 8, .cores_per_gpu = 9})[0] ==
          LargestJobRow{"A", 16, 8, "c", "s0"});
    CHECK(largest_job(cluster, {.cores_per_gpu = 0})[2] == LargestJobRow{"C", 1, 1, "e", "e"});
    CHECK(largest_job(cluster, {.level = 0})[3] == LargestJobRow{"*", 18, 18, "c", "c"});
}

TEST_CASE("the largest job agrees with placing pods one by one on random clusters") {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        const auto spec = random_snapshot(seed);
        const LargestJobOptions options{.gpus_per_pod = 1 + static_cast<int>(seed % 3),
                                        .cores_per_gpu = static_cast<int>(seed % 4)};
        const auto free = free_nodes(spec);
        std::size_t depth = 0;
        for (const auto& n : spec.nodes) depth = std::max(depth, n.network.size());
        std::map<std::string, std::map<std::string, std::int64_t>> across, within;
        for (std::size_t i = 0; i < spec.nodes.size(); ++i) {
            const auto& n = spec.nodes[i];
            if (!n.schedulable) continue;
            auto gpus = std::count(free[i].gpu_milli.begin(), free[i].gpu_milli.end(), 1000);
            auto cpu = free[i].cpu_milli;
            for (const std::int64_t g = options.gpus_per_pod;
                 gpus >= g && cpu >= g * 1000 * options.cores_per_gpu;
                 gpus -= g, cpu -= g * 1000 * options.cores_per_gpu)
                for (const auto& model : {n.gpu_model, std::string("*")}) {
                    across[model][n.network.empty() ? n.name : n.network[0]] += g;
                    within[model][n.network.size() < depth ? n.name : n.network.back()] += g;
                }
        }
        const auto largest = [](const std::map<std::string, std::int64_t>& sums) {
            std::int64_t best = 0;
            for (const auto& [domain, gpus] : sums) best = std::max(best, gpus);
            return best;
        };
        for (const auto& row : largest_job(Cluster::build(spec), options)) {
            REQUIRE(row.across == largest(across[row.gpu_model]));
            REQUIRE(row.within == largest(within[row.gpu_model]));
            if (row.across > 0) REQUIRE(across[row.gpu_model][row.cluster] == row.across);
            if (row.within > 0) REQUIRE(within[row.gpu_model][row.domain] == row.within);
        }
    }
}

TEST_CASE("the largest job refuses options out of range") {
    const auto cluster = Cluster::build(random_snapshot(1));
    REQUIRE_THROWS_MESSAGE(largest_job(cluster, {.gpus_per_pod = 65}), InvalidInput,
                           "gpus_per_pod: 65; expected 1 64");
    REQUIRE_THROWS_MESSAGE(largest_job(cluster, {.cores_per_gpu = -1}), InvalidInput,
                           "cores_per_gpu: -1; expected 0 1000000");
    REQUIRE_THROWS_MESSAGE(largest_job(cluster, {.level = 9}), InvalidInput, "level: 9; expected -1 2");
}
