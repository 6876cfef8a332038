// SPDX-License-Identifier: Apache-2.0
#include "example_clusters.hpp"

using namespace testing_support;

namespace {

template <con::Partitioner P>
con::Partition partition(const Cluster& cluster, const P& policy, std::size_t size, std::uint64_t seed = 0) {
    Rng rng(seed);
    auto groups = policy(cluster, size, rng);
    std::set<NodeId> seen;
    for (const auto& group : groups) {
        CHECK(!group.empty());
        for (const auto node : group) CHECK(seen.insert(node).second);
    }
    CHECK(seen.size() == cluster.node_count());
    return groups;
}

}  // namespace

TEST_CASE("partitions are disjoint and complete") {
    const auto cluster = Cluster::build(generated(700));
    for (const auto& group : partition(cluster, con::RandomGroups{}, 50)) CHECK(group.size() <= 50);
    CHECK(partition(cluster, con::RandomGroups{}, 50, 1) != partition(cluster, con::RandomGroups{}, 50, 2));
    for (const auto& group : partition(cluster, con::ByLocality{}, 50)) CHECK(group.size() <= 50);
    const auto pools = partition(cluster, con::ByGpuModel{}, 1);
    const auto model = [&](NodeId node) { return cluster.inventory().nodes.gpu_model[index(node)]; };
    for (const auto& pool : pools)
        for (const auto node : pool) CHECK(model(node) == model(pool.front()));
    CHECK(std::is_sorted(pools.begin(), pools.end(),
                         [](const auto& a, const auto& b) { return a.size() > b.size(); }));
    const auto level = cluster.inventory().network_levels() - 1;
    std::set<DomainId> seen;
    for (const auto& group : partition(cluster, con::BySwitch{}, 100)) {
        std::set<DomainId> domains;
        for (const auto node : group) domains.insert(cluster.inventory().domain(level, node));
        for (const auto domain : domains) CHECK(seen.insert(domain).second);  // no switch is cut
    }
}

TEST_CASE("a pool that is too large is cut into parts that are alike") {
    ClusterSpec spec;
    const auto most = static_cast<int>(con::ByGpuModel::largest_group);
    constexpr auto together = con::ByGpuModel::dealt_together;
    for (int i = 0; i < 2 * most + 1; ++i) spec.nodes.push_back(node("n" + std::to_string(i), 4));
    for (auto& each : spec.nodes) each.gpu_model = "H800";
    const auto cluster = Cluster::build(spec);
    const auto groups = partition(cluster, con::ByGpuModel{}, 1);
    REQUIRE(groups.size() == 3);
    for (const auto& group : groups) {
        CHECK(group.size() + together >= spec.nodes.size() / 3);
        CHECK(group.size() <= spec.nodes.size() / 3 + together);
    }
    CHECK(index(groups[1][0]) == together);
    CHECK(index(groups[1][together - 1]) == 2 * together - 1);
    CHECK(index(groups[1][together]) == 4 * together);
    spec.nodes.resize(static_cast<std::size_t>(most));
    CHECK(partition(Cluster::build(spec), con::ByGpuModel{}, 1).size() == 1);
}

TEST_CASE("a constraint that names a level below the network leaves switches whole") {
    ClusterSpec spec;
    for (int i = 0; i < 8; ++i) {
        spec.nodes.push_back(node("n" + std::to_string(i), 4));
        spec.nodes.back().network = {"root", "agg", i % 2 == 0 ? "even" : "odd"};
    }
    spec.tasks.push_back(task("t", "n0", {0}));
    spec.tasks.back().anti_affinity = {{"g", 5, 1}};
    const auto cluster = Cluster::build(spec);
    const auto groups = partition(cluster, con::BySwitch{}, 3);
    REQUIRE(groups.size() == 2);
    for (const auto& group : groups) CHECK(group.size() == 4);
    // n0, the only occupied node of its switch, joins n1.
    spec.tasks.push_back(task("u", "n1", {0}));
    const auto fuller = Cluster::build(spec);
    Plan plan{.waves = 1,
              .moves = {{fuller.find_task("t"), fuller.find_node("n0"), fuller.find_node("n1"), 0b0010, 0}},
              .vacated_nodes = {fuller.find_node("n0")}};
    CHECK(con::value_report(fuller, plan).vacated_domains == 1);
}
