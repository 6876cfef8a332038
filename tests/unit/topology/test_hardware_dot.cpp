// SPDX-License-Identifier: Apache-2.0
#include <support/catch.hpp>

#include <gpusched/topology/hardware_dot.hpp>

#include <algorithm>
#include <string>

using namespace gpusched;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
}

}  // namespace

TEST_CASE("a machine as a drawing", "[topology]") {
    auto graph = *topology::HardwareGraph::preset("a100x8");
    graph.allocate(0b1, "team \"a\"");
    graph.set_failed(7);
    const auto dot = topology::hardware_to_dot(graph);
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
    CHECK(count(topology::hardware_to_dot(graph, {.cores = true}), "tooltip=contains") == 128);
    // NUMA nodes and core groups stand inside their socket.
    const auto first_socket = dot.substr(dot.find("subgraph"), dot.find("}\n") - dot.find("subgraph"));
    CHECK(count(first_socket, "core_group") == 8);
    CHECK(count(first_socket, "numa_node 0") == 1);
    CHECK(count(first_socket, "numa_node 1") == 0);
}
