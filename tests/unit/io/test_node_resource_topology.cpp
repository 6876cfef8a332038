// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/io/io.hpp>

using namespace gpusched;

namespace node_resource_topology_tests {

const std::string object = R"({"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology",
 "metadata": {"name": "w0"}, "topologyPolicies": ["SingleNUMANodeContainerLevel"], "zones": [
  {"name": "node-1", "type": "Node", "parent": "package-1", "costs": [{"name": "node-0", "value": 20}],
   "resources": [{"name": "cpu", "capacity": "4", "allocatable": "3500m", "available": 1},
                 {"name": "nvidia.com/gpu", "capacity": "2", "allocatable": "2", "available": "0"}]},
  {"name": "package-1", "type": "Package"}, {"name": "package-0", "type": "Package"},
   {"name": "l3-0", "type": "Cache"},
  {"name": "node-0", "type": "Node", "parent": "package-0",
   "resources": [{"name": "cpu", "available": "2"},
    {"name": "memory", "capacity": "2Gi", "available": "1024Mi"},
                 {"name": "amd.com/gpu", "capacity": "1"}]}]})";

TEST_CASE("a NodeResourceTopology gives the free resources of each NUMA node", "[io]") {
    const auto nodes = io::node_resource_topology_from_text(object);
    REQUIRE(nodes.size() == 1);
    CHECK(nodes[0].node == "w0");
    REQUIRE(nodes[0].numa_nodes.size() == 2);
    const auto& [first, second] = std::pair(nodes[0].numa_nodes[0], nodes[0].numa_nodes[1]);
    CHECK(first.id == 0);
    CHECK(first.socket == 0);
    CHECK(first.resources.at("cpu") == io::ResourceAmount{2000, 2000, 2000});
    CHECK(first.resources.at("memory") == io::ResourceAmount{2147483648000, 2147483648000, 1073741824000});
    CHECK(second.resources.at("cpu") == io::ResourceAmount{4000, 3500, 1000});
    CHECK(second.resources.at("nvidia.com/gpu") == io::ResourceAmount{2000, 2000, 0});
    CHECK(second.costs == std::map<std::string, std::int64_t>{{"node-0", 20}});

    const auto machine = io::machine_of(nodes[0]);
    CHECK(machine.graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 2, 0b001}, {1, 4, 0b110}});
    CHECK(machine.notes.size() == 1);
    CHECK(io::machine_of(nodes[0], {.threads_per_core = 2}).graph.hardware().cores() == 3);

    if (!json::reads_yaml()) return;
    const auto two =
        io::node_resource_topology_from_text("kind: NodeResourceTopology\nmetadata: {name: a}\nzones:\n- "
                                             "{name: node-0, type: Node, resources: [{name: cpu, "
                                             "capacity: 1e1}]}\n---\nkind: NodeResourceTopology\nmetadata: "
                                             "{name: b}\nzones: []\n---\nkind: Pod\n");
    REQUIRE(two.size() == 2);
    CHECK(two[0].numa_nodes[0].resources.at("cpu").capacity_milli == 10000);
    CHECK(io::machine_of(two[0]).notes.size() == 2);  // sockets, too
    CHECK(io::machine_of(two[1]).graph.masks().healthy == 0);
}

TEST_CASE("texts without a NodeResourceTopology are refused", "[io]") {
    const auto refused = [](const std::string& text, const std::string& words) {
        INFO(text);
        CHECK_THROWS_MESSAGE(io::node_resource_topology_from_text(text, "t"), InvalidInput, words);
    };
    const auto with = [](const std::string& zones) {
        return R"({"kind": "NodeResourceTopology", "metadata": {"name": "n"}, "zones": )" + zones + "}";
    };
    const auto amount = [&](const std::string& resource) {
        return with(R"([{"name": "node-0", "type": "Node", "resources": [)" + resource + "]}]");
    };
    refused("{}", "t objects NodeResourceTopology found none");
    refused(R"({"kind": "NodeResourceTopology", "zones": []})", "t expected metadata.name");
    refused(with("{}"), "zones array");
    refused(with("[{}]"), "/zones/0 object name type");
    refused(with(R"([{"name": "node", "type": "Node"}])"), "/zones/0/name ends number");
    refused(with(R"([{"name": "a0", "type": "Node"}, {"name": "b0", "type": "Node"}])"), "NUMA node 0 twice");
    refused(with(R"([{"name": "a0", "type": "Package"}, {"name": "a0", "type": "Package"}])"), "'a0' twice");
    refused(amount("{}"), "resources/0 object name");
    refused(amount(R"({"name": "cpu"})"), "capacity allocatable available");
    for (const auto* bad : {"\"\"", "\"x\"", "\"1Q\"", "\"-1\"", "\"1e40\"", "[]", "\"nan\""})
        refused(amount(R"({"name": "cpu", "capacity": )" + std::string(bad) + "}"), "capacity quantity");
    refused(amount(R"({"name": "cpu", "capacity": 1}, {"name": "cpu", "capacity": 1})"), "'cpu' twice");
    const auto machine = [&](const std::string& resource) {
        return io::machine_of(io::node_resource_topology_from_text(amount(resource)).front());
    };
    CHECK_THROWS_WITH(machine(R"({"name": "nvidia.com/gpu", "capacity": 65})"),
                      Mentions("node 'n' 65 GPUs 64"));
    CHECK_THROWS_WITH(machine(R"({"name": "cpu", "capacity": "1M"})"), Mentions("at most 65536 cores"));
}

}  // namespace node_resource_topology_tests
