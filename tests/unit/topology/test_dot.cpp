// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/model/cluster.hpp>
#include <gpusched/topology/topology.hpp>

using namespace gpusched;
using namespace gpusched::topology;

namespace {

ClusterSpec spec() {
    ClusterSpec spec;
    spec.nodes.push_back({.name = "n0", .gpu_model = "A100", .gpu_count = 8, .network = {"c", "s\"0\\"}});
    spec.nodes.push_back({.name = "n1", .gpu_count = 2, .network = {"c"}});
    spec.nodes.push_back({.name = "n2"});
    return spec;
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
}

}  // namespace

TEST_CASE("the tree as DOT") {
    const auto cluster = Cluster::build(spec());
    const NetworkTree tree(cluster.inventory());
    CHECK(to_dot(tree, cluster.inventory()) == R"(digraph network {
  node [shape=box];
  v1 [label="c"];
  v2 [label="s\"0\\"];
  v1 -> v2;
  v3 [label="n0\n8 x A100", shape=ellipse];
  v2 -> v3;
  v4 [label="n1\n2 x GPU", shape=ellipse];
  v1 -> v4;
  v5 [label="n2", shape=ellipse];
}
)");
}

TEST_CASE("the tree as DOT without its nodes") {
    const auto cluster = Cluster::build(spec());
    const NetworkTree tree(cluster.inventory());
    CHECK(to_dot(tree, cluster.inventory(), {.nodes = false}) == R"(digraph network {
  node [shape=box];
  v1 [label="c\n2 nodes, 10 GPUs"];
  v2 [label="s\"0\\\n1 nodes, 8 GPUs"];
  v1 -> v2;
}
)");
}

TEST_CASE("a machine as a drawing", "[topology]") {
    auto graph = *HardwareGraph::preset("a100x8");
    graph.allocate(0b1, "team \"a\"");
    graph.set_failed(7);
    const auto dot = hardware_to_dot(graph);
    CHECK(dot.starts_with("graph hardware {\n"));
    CHECK(std::count(dot.begin(), dot.end(), '{') == std::count(dot.begin(), dot.end(), '}'));
    CHECK(count(dot, "subgraph cluster_") == 2);
    CHECK(count(dot, "shape=ellipse") == 8);
    CHECK(count(dot, "tooltip=nvlink") == 28);
    CHECK(count(dot, "300 GB/s") == 28);
    CHECK(count(dot, "8 cores") == 16);
    CHECK(count(dot, "tooltip=interconnect") == 1);
    CHECK(count(dot, "team \\\"a\\\"") == 1);
    CHECK(count(dot, "fillcolor=red") == 1);
    CHECK(count(dot, "fillcolor=lightgrey") == 1);
    CHECK(count(dot, "tooltip=contains") == 0);
    CHECK(count(hardware_to_dot(graph, {.cores = true}), "tooltip=contains") == 128);
    // NUMA nodes and core groups stand inside their socket.
    const auto first_socket = dot.substr(dot.find("subgraph"), dot.find("}\n") - dot.find("subgraph"));
    CHECK(count(first_socket, "core_group") == 8);
    CHECK(count(first_socket, "numa_node 0") == 1);
    CHECK(count(first_socket, "numa_node 1") == 0);
}
