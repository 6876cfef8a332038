// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/model/cluster.hpp>
#include <gpusched/topology/topology.hpp>

using namespace gpusched;

TEST_CASE("racks are domains of the network", "[topology]") {
    CHECK(topology::rack_preset("dgx") == std::nullopt);
    for (const auto name : topology::rack_preset_names()) CHECK(topology::rack_preset(name));
    const auto preset = *topology::rack_preset("gb200-nvl72");
    CHECK(preset.nodes_per_rack * preset.gpus_per_node == 72);
    ClusterSpec spec;
    spec.nodes = topology::rack_nodes(preset, 2, "a-", {"hall"});
    REQUIRE(spec.nodes.size() == 36);
    CHECK(spec.nodes[18].name == "a-r1-n0");
    CHECK(spec.nodes[18].network == std::vector<std::string>{"hall", "a-r1"});
    const auto cluster = Cluster::build(spec);
    const topology::NetworkTree tree(cluster.inventory());
    CHECK(tree.domains(1).size() == 2);
    for (const auto rack : tree.domains(1)) {
        int gpus = 0;
        for (const auto node : tree.nodes_under(rack))
            gpus += cluster.inventory().nodes.gpu_count[index(node)];
        CHECK(gpus == 72);
    }
}

TEST_CASE("racks around nodes that are there", "[topology]") {
    const topology::RackPreset pair{"pair", 2, 4, 100};
    ClusterSpec spec;
    for (int n = 0; n < 5; ++n) {
        spec.nodes.push_back({.name = "n" + std::to_string(n), .gpu_count = 4});
        spec.nodes.back().network = {n < 3 ? "s0" : "s1"};
    }
    CHECK(topology::add_racks(spec, pair, {0, 2, 3, 4}, "x-") == 2);
    CHECK(spec.nodes[2].network == std::vector<std::string>{"s0", "x-r0"});
    CHECK(spec.nodes[1].network == std::vector<std::string>{"s0"});
    CHECK(spec.nodes[4].network == std::vector<std::string>{"s1", "x-r1"});

    const auto before = spec;
    const auto refused = [&](const topology::RackPreset& preset, const std::vector<std::size_t>& nodes,
                             const char* part) {
        CHECK_THROWS_WITH(topology::add_racks(spec, preset, nodes), Mentions(part));
        CHECK(spec == before);
    };
    refused(pair, {0}, "nodes 1 multiple 2");
    refused(pair, {0, 5}, "nodes 5; less than 5");
    refused(pair, {0, 0}, "node 'n0' given twice");
    refused(pair, {0, 4}, "node 'n4' network differs 'n0'");
    refused({"p", 2, 8, 1}, {0, 2}, "node 'n0' gpu_count 4; 8 to");
    refused({"p", 0, 0, 1}, {}, "nodes_per_rack 0");
    CHECK_THROWS_AS(topology::rack_nodes(pair, 0), InvalidInput);
}
