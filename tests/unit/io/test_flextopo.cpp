// SPDX-License-Identifier: Apache-2.0
#include "support/real_data.hpp"

#include <gpusched/io/io.hpp>

using namespace gpusched;
using topology::HardwareKind;
using topology::HardwareStatus;

namespace {

/// As the collector writes it: edges downwards, GPUs without any, numbers as numbers.
const std::string collected = R"(apiVersion: flextopo.example.com/v1alpha1
kind: FlexTopo
metadata: {name: 10.0.0.1}
spec:
  edges:
  - {source: socket-0, target: numa-0, type: contains}
  - {source: socket-0, target: numa-1, type: contains}
  - {source: numa-0, target: coregroup-0-0, type: contains}
  - {source: numa-1, target: coregroup-1-0, type: contains}
  - {source: coregroup-0-0, target: core-0, type: contains}
  - {source: coregroup-1-0, target: core-1, type: contains}
  nodes:
  - {id: core-1, type: CPUCore, attributes: {status: used, usedBy: pod-a}}
  - {id: coregroup-1-0, type: CoreGroup, attributes: {groupIndex: 0, nodeID: 1}}
  - attributes:
      memoryTotal: 24564
      name: "RTX 4090"
      status: used
      usedBy: 17
    id: gpu-1
    type: GPU
  - {id: core-0, type: CPUCore, attributes: {status: free, usedBy: ""}}
  - {id: coregroup-0-0, type: CoreGroup}
  - {id: gpu-0, type: GPU, attributes: {uuid: GPU-x, status: failed}}
  - {id: numa-0, type: NUMANode, attributes: {}}
  - {id: numa-1, type: NUMANode, attributes: {}}
  - {id: socket-0, type: Socket, attributes: ~}
)";

/// The paper's words and edges, JSON, every attribute as text.
const std::string paper = R"({"kind": "FlexTopo", "spec": {"nodes": [
  {"id": "socket 0", "type": "Socket"}, {"id": "group 0", "type": "CPU CoreGroup",
   "attributes": {"Status": "free"}},
  {"id": "core 2", "type": "CPU Core", "attributes": {"Status": "allocated", "UsedBy": "i0"}},
  {"id": "numa 0", "type": "NUMA Node"}, {"id": "numa 1", "type": "NUMA Node"},
  {"id": "gpu 3", "type": "GPU", "attributes": {"UUID": "u", "Model": "A100", "Memory": "81920",
   "Used_By": "i1"}}],
 "edges": [{"source": "socket 0", "target": "group 0", "type": "host"},
  {"source": "group 0", "target": "core 2", "type": "contain"},
   {"source": "group 0", "target": "numa 0", "type": "localized"},
  {"source": "gpu 3", "target": "numa 0", "type": "nearby"}, {"source": "socket 0", "target": "numa 1"}]}})";

const topology::HardwareVertex& vertex(const topology::HardwareGraph& graph, HardwareKind kind, int id) {
    for (const auto v : graph.vertices())
        if (graph.vertex(v).kind == kind && graph.vertex(v).id == id) return graph.vertex(v);
    throw std::out_of_range("vertex");
}

}  // namespace

TEST_CASE("a FlexTopo object in the paper's words", "[io]") {
    const auto [graph, notes] = io::flextopo_from_text(paper);
    CHECK(notes.empty());
    CHECK(graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 1, 0b1000}, {0, 0, 0}});
    const auto& gpu = vertex(graph, HardwareKind::gpu, 3);
    CHECK(gpu.uuid == "u");
    CHECK(gpu.model == "A100");
    CHECK(gpu.memory_mib == 81920);
    CHECK(gpu.status == HardwareStatus::allocated);  // someone uses it
    CHECK(gpu.used_by == "i1");
    CHECK(vertex(graph, HardwareKind::core, 2).used_by == "i0");
}

TEST_CASE("a FlexTopo object as the collector writes it", "[io]") {
    if (!json::reads_yaml()) {
        CHECK_THROWS_WITH(io::flextopo_from_text(collected), Mentions("libyaml-dev"));
        return;
    }
    const auto [graph, notes] = io::flextopo_from_text(collected);
    CHECK(graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 1, 0b01}, {0, 1, 0b10}});
    REQUIRE(notes.size() == 1);
    CHECK_THAT(notes.front(), Mentions("GPUs none edge spread NUMA"));
    CHECK(graph.masks().healthy == 0b10);
    CHECK(graph.masks().free == 0);
    CHECK(vertex(graph, HardwareKind::gpu, 1).used_by == "17");
    CHECK(vertex(graph, HardwareKind::gpu, 1).memory_mib == 24564);
    CHECK(vertex(graph, HardwareKind::core, 0).status == HardwareStatus::free);
    CHECK(vertex(graph, HardwareKind::core, 1).used_by == "pod-a");
}

TEST_CASE("texts without a FlexTopo object are refused", "[io]") {
    const auto refused = [](const std::string& text, const std::string& words) {
        INFO(text);
        CHECK_THROWS_MESSAGE(io::flextopo_from_text(text, {}, "t"), InvalidInput, words);
    };
    const auto spec = [](const std::string& nodes, const std::string& edges) {
        return R"({"kind": "FlexTopo", "spec": {"nodes": [)" + nodes + R"(], "edges": [)" + edges + "]}}";
    };
    const std::string gpu = R"({"id": "g0", "type": "GPU"})", numa = R"({"id": "n0", "type": "NUMANode"})";
    std::string sockets;
    for (int s = 0; s < 257; ++s)
        sockets += std::string(s == 0 ? "" : ", ") + R"({"type": "Socket", "id": "socket )" +
                   std::to_string(s) + R"("})";
    refused(R"({"kind": "FlexTopo", "spec": {"nodes": [)" + sockets + "]}}", "t 256 sockets");
    refused("{}", "one object FlexTopo something else");
    refused(R"({"kind": "CustomResourceDefinition"})", "found CustomResourceDefinition");
    refused(R"({"kind": "List", "items": [{"kind": "FlexTopo"}, {"kind": "FlexTopo"}]})",
            "one object FlexTopo found 2");
    refused(R"({"kind": "FlexTopo"})", "spec.nodes array");
    refused("{", "t:1:1 not JSON document");
    refused(spec("3", ""), "t /spec/nodes/0 object id type");
    refused(spec(R"({"id": "g", "type": "GPU"})", ""), "/spec/nodes/0/id name ends number");
    refused(spec(R"({"id": "g0", "type": "FPGA"})", ""), "/spec/nodes/0/type Socket");
    refused(spec(gpu + "," + gpu, ""), "/spec/nodes/1 'g0' twice");
    refused(spec(R"({"id": "g0", "type": "GPU", "attributes": {"memoryTotal": "much"}})", ""),
            "memoryTotal MiB");
    refused(spec(R"({"id": "g0", "type": "GPU", "attributes": {"status": "fine"}})", ""), "status free");
    refused(spec(gpu, R"({"source": "g0", "target": "n0"})"), "/spec/edges/0/target id node");
    refused(spec(gpu + R"(,{"id": "s0", "type": "Socket"})", R"({"source": "g0", "target": "s0"})"),
            "vertices belong together");
    refused(spec(gpu + "," + numa + R"(,{"id": "n1", "type": "NUMANode"})",
                 R"({"source": "g0", "target": "n0"},{"source": "n1", "target": "g0"})"),
            "'g0' belongs 'n0' already");
    refused(spec(R"({"id": "c0", "type": "CPUCore"})", ""), "'c0' no core group");
    refused(spec(R"({"id": "c0", "type": "CoreGroup"})", ""), "'c0' no NUMA");
    refused(spec(R"({"id": "g64", "type": "GPU"})", ""), "gpu id 64 0 63");
    if (!json::reads_yaml()) return;
    refused("a: *b\n", "no aliases");
    refused("a: [1\n", "t:2:1 not YAML document");
    refused("? [a]\n: b\n", "name key");
    refused("", "FlexTopo found nothing");
    CHECK_THROWS_WITH(io::flextopo_from_text(std::string_view()), Mentions("FlexTopo found nothing"));
    refused("kind: FlexTopo\nkind: FlexTopo\n", "'kind' more once");
    refused(std::string(100, '[') + "x", "nested deeper");
    refused("- " + std::string(100, '['), "nested deeper");
}

TEST_CASE("the real FlexTopo object", "[io]") {
    if (!testing_support::is_here(testing_support::real_data("flextopo")) || !json::reads_yaml()) return;
    const auto files = testing_support::real_files("flextopo", ".yaml");
    REQUIRE(files.size() == 2);
    const auto [graph, notes] = io::read_flextopo(files.front().string());
    // The machine of the preset: GPU i by NUMA node i, which here is inferred.
    CHECK(graph.hardware().numa_nodes == hardware_preset("rtx4090x8")->numa_nodes);
    CHECK(notes.size() == 1);
    CHECK(graph.masks().free == 0xff);
    CHECK(vertex(graph, HardwareKind::gpu, 7).uuid == "GPU-917db8e0-494e-4c2a-ac28-872f424517ed");
    CHECK(vertex(graph, HardwareKind::gpu, 0).model == "NVIDIA GeForce RTX 4090");
    CHECK(vertex(graph, HardwareKind::gpu, 0).memory_mib == 24564);
    std::set<std::string> users;
    for (const auto v : graph.vertices())
        if (graph.vertex(v).kind == HardwareKind::core) users.insert(graph.vertex(v).used_by);
    CHECK(users.size() == 3);
    CHECK_THROWS_WITH(io::read_flextopo(files.back().string()), Mentions("CustomResourceDefinition"));
}
