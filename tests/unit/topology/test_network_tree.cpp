// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/topology/topology.hpp>

using namespace gpusched;
using namespace gpusched::topology;

namespace {

static_assert(NetworkGraph<NetworkTree>);

Cluster cluster_of(const std::vector<std::vector<std::string>>& paths) {
    ClusterSpec spec;
    for (std::size_t i = 0; i < paths.size(); ++i)
        spec.nodes.push_back({.name = "n" + std::to_string(i), .network = paths[i]});
    return Cluster::build(spec);
}

// Uneven in width and depth; n3 hangs below an aggregation switch, n6 below a cluster, n5 is nowhere.
Cluster uneven() {
    return cluster_of({{"c0", "a0", "s0"},
                       {"c0", "a1", "s1"},
                       {"c0", "a0", "s0"},
                       {"c0", "a0"},
                       {"c1", "a2", "s2"},
                       {},
                       {"c1"},
                       {"c0", "a0", "s3"}});
}

NodeId n(std::size_t i) { return make_id<NodeId>(i); }

std::vector<std::size_t> numbers(std::span<const NodeId> nodes) {
    std::vector<std::size_t> out;
    for (const auto node : nodes) out.push_back(index(node));
    return out;
}

using Numbers = std::vector<std::size_t>;

}  // namespace

TEST_CASE("an uneven tree, by hand") {
    const auto cluster = uneven();
    const auto& inv = cluster.inventory();
    const NetworkTree tree(inv);
    REQUIRE(tree.levels() == 3);
    CHECK(tree.node_count() == 8);
    CHECK(tree.vertex_count() == 1 + 2 + 3 + 4 + 8);
    CHECK(tree.domains(0).size() == 2);
    CHECK(tree.domains(1).size() == 3);
    CHECK(tree.domains(2).size() == 4);

    const auto s0 = tree.ancestor(n(0), 2);
    const auto a0 = tree.ancestor(n(0), 1);
    const auto c0 = tree.ancestor(n(0), 0);
    CHECK(tree.name(s0) == "s0");
    CHECK(tree.name(a0) == "a0");
    CHECK(tree.name(c0) == "c0");
    CHECK(tree.level(s0) == 2);
    CHECK(tree.level(c0) == 0);
    CHECK(tree.level(tree.vertex(n(0))) == node_level);
    CHECK(tree.depth(s0) == 3);
    CHECK(tree.parent(s0) == a0);
    CHECK(tree.parent(c0) == NetworkTree::root());
    CHECK(tree.parent(NetworkTree::root()) == NetworkTree::root());
    CHECK(tree.node(s0) == none<NodeId>);
    CHECK(tree.node(tree.vertex(n(4))) == n(4));

    CHECK(numbers(tree.nodes_under(s0)) == Numbers{0, 2});
    CHECK(numbers(tree.nodes_under(a0)) == Numbers{0, 2, 7, 3});  // switches first, then the node without one
    CHECK(numbers(tree.nodes_under(c0)) == Numbers{0, 2, 7, 3, 1});
    CHECK(numbers(tree.nodes_under(tree.vertex(n(5)))) == Numbers{5});
    CHECK(numbers(tree.locality_order()) == Numbers{0, 2, 7, 3, 1, 4, 6, 5});
    CHECK(tree.nodes_under(NetworkTree::root()).size() == 8);

    const auto below = tree.children(a0);
    REQUIRE(below.size() == 3);
    CHECK(tree.name(below[0]) == "s0");
    CHECK(tree.name(below[1]) == "s3");
    CHECK(below[2] == tree.vertex(n(3)));
    CHECK(tree.children(tree.vertex(n(3))).empty());
}

TEST_CASE("common ancestors and distances, by hand") {
    const auto cluster = uneven();
    const NetworkTree tree(cluster.inventory());
    const auto meet = [&](std::size_t a, std::size_t b) {
        return tree.name(tree.common_ancestor(tree.vertex(n(a)), tree.vertex(n(b))));
    };
    const auto hops = [&](std::size_t a, std::size_t b) {
        return tree.distance(tree.vertex(n(a)), tree.vertex(n(b)));
    };
    CHECK(meet(0, 2) == "s0");
    CHECK(hops(0, 2) == 2);
    CHECK(meet(0, 7) == "a0");
    CHECK(hops(0, 7) == 4);
    CHECK(meet(0, 3) == "a0");
    CHECK(hops(0, 3) == 3);
    CHECK(meet(1, 0) == "c0");
    CHECK(hops(1, 0) == 6);
    CHECK(meet(4, 6) == "c1");
    CHECK(hops(4, 6) == 4);
    CHECK(hops(5, 5) == 0);
    CHECK(hops(0, 4) == std::nullopt);  // two clusters
    CHECK(hops(5, 6) == std::nullopt);  // one is nowhere
    CHECK(tree.common_ancestor(tree.vertex(n(0)), tree.vertex(n(4))) == NetworkTree::root());
    const auto s0 = tree.ancestor(n(0), 2);
    CHECK(tree.common_ancestor(s0, tree.vertex(n(2))) == s0);
    CHECK(tree.distance(s0, tree.vertex(n(2))) == 1);
    CHECK(tree.distance(s0, tree.ancestor(n(1), 2)) == 4);
}

TEST_CASE("the tree contains the inventory's domains, unknown positions included") {
    const auto cluster = uneven();
    const auto& inv = cluster.inventory();
    const NetworkTree tree(inv);
    for (Level level = node_level; level < inv.network_levels(); ++level)
        for (const auto node : cluster.nodes()) {
            const auto v = tree.vertex(level, inv.domain(level, node));
            CHECK(v == tree.ancestor(node, level));
            if (inv.position_known(level, node) && level != node_level) {
                CHECK(tree.domain(v) == inv.domain(level, node));
                CHECK(tree.name(v) == inv.domain_name(level, inv.domain(level, node)));
            } else {
                CHECK(v == tree.vertex(node));
                CHECK(numbers(tree.nodes_under(v)) == Numbers{index(node)});
            }
        }
}

TEST_CASE("a level that only a constraint names has no domains; empty clusters have an empty tree") {
    ClusterSpec spec;
    spec.nodes.push_back({.name = "a", .network = {"c"}});
    spec.tasks.push_back({.name = "t", .network_affinity = NetworkAffinity{2, NetworkMode::preferred}});
    const auto cluster = Cluster::build(spec);
    const NetworkTree tree(cluster.inventory());
    CHECK(tree.levels() == 3);
    CHECK(tree.domains(2).empty());
    CHECK(tree.vertex(2, cluster.inventory().domain(2, n(0))) == tree.vertex(n(0)));
    const Cluster nothing;
    const NetworkTree empty(nothing.inventory());
    CHECK(empty.vertex_count() == 1);
    CHECK(empty.levels() == 0);
    CHECK(empty.children(NetworkTree::root()).empty());
    CHECK(empty.locality_order().empty());
}

TEST_CASE("on random trees all answers follow from the nodes' paths") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        Rng rng(seed);
        std::vector<std::vector<std::string>> paths;
        for (int i = 0; i < 40; ++i) {
            std::vector<std::string> path;
            const auto depth = rng.below(6);
            for (std::uint64_t l = 0; l < depth; ++l)
                path.push_back((path.empty() ? "d" : path.back() + "-") + std::to_string(rng.below(3)));
            paths.push_back(path);
        }
        const auto cluster = cluster_of(paths);
        const NetworkTree tree(cluster.inventory());

        auto order = numbers(tree.locality_order());
        std::sort(order.begin(), order.end());
        for (std::size_t i = 0; i < paths.size(); ++i) REQUIRE(order[i] == i);

        for (std::size_t a = 0; a < paths.size(); ++a) {
            REQUIRE(tree.depth(tree.vertex(n(a))) == static_cast<int>(paths[a].size()) + 1);
            for (std::size_t b = 0; b < paths.size(); ++b) {
                std::size_t shared = 0;
                while (shared < std::min(paths[a].size(), paths[b].size()) &&
                       paths[a][shared] == paths[b][shared])
                    ++shared;
                const auto meet = tree.common_ancestor(tree.vertex(n(a)), tree.vertex(n(b)));
                const auto hops = tree.distance(tree.vertex(n(a)), tree.vertex(n(b)));
                if (a == b) {
                    REQUIRE(hops == 0);
                } else if (shared == 0) {
                    REQUIRE(meet == NetworkTree::root());
                    REQUIRE_FALSE(hops.has_value());
                } else {
                    REQUIRE(tree.name(meet) == paths[a][shared - 1]);
                    REQUIRE(hops == static_cast<int>(paths[a].size() + paths[b].size() + 2 - 2 * shared));
                }
            }
        }
        for (Level level = 0; level < tree.levels(); ++level)
            for (const auto v : tree.domains(level)) {
                std::vector<std::size_t> expected;
                for (std::size_t i = 0; i < paths.size(); ++i)
                    if (paths[i].size() > static_cast<std::size_t>(level) &&
                        paths[i][static_cast<std::size_t>(level)] == tree.name(v))
                        expected.push_back(i);
                auto found = numbers(tree.nodes_under(v));
                std::sort(found.begin(), found.end());
                REQUIRE(found == expected);
                REQUIRE_FALSE(found.empty());
            }
    }
}
