// SPDX-License-Identifier: Apache-2.0
#include "support/real_data.hpp"

#include <gpusched/io/io.hpp>

using namespace gpusched;
using topology::HardwareGraph;
using topology::HardwareKind;
using topology::HardwareRelation;
using topology::HardwareStatus;

namespace {

using Name = std::tuple<HardwareKind, int>;
using Vertex =
    std::tuple<HardwareKind, int, std::string, std::string, std::int64_t, HardwareStatus, std::string>;
using Edge = std::tuple<HardwareRelation, Name, Name>;

/// What Table 2 of the paper has of a machine.
std::pair<std::multiset<Vertex>, std::multiset<Edge>> table_2(const HardwareGraph& graph) {
    std::pair<std::multiset<Vertex>, std::multiset<Edge>> out;
    for (const auto v : graph.vertices()) {
        const auto& x = graph.vertex(v);
        if (x.kind != HardwareKind::pcie_root && x.kind != HardwareKind::pcie_switch)
            out.first.insert({x.kind, x.id, x.uuid, x.model, x.memory_mib, x.status, x.used_by});
    }
    for (const auto e : graph.edges()) {
        const auto relation = graph.edge(e).relation;
        if (relation == HardwareRelation::pcie || relation == HardwareRelation::nvlink ||
            relation == HardwareRelation::interconnect)
            continue;
        const auto &a = graph.vertex(graph.source(e)), &b = graph.vertex(graph.target(e));
        const Name x{a.kind, a.id}, y{b.kind, b.id};
        out.second.insert({relation, std::min(x, y), std::max(x, y)});
    }
    return out;
}

}  // namespace

TEST_CASE("a machine as the text of a FlexTopo object", "[io]") {
    HardwareGraph graph(Hardware{"", {{0, 2, 0b01}, {1, 0, 0b10}}}, {.core_group_size = 2});
    graph.allocate(0b01, "team/pod \"a\"");
    graph.set_failed(1);
    CHECK(io::flextopo_to_json(graph, "10.0.0.1") ==
          R"({"apiVersion": "flextopo.baichuan-inc.com/v1alpha1", "kind": "FlexTopo", )"
          R"("metadata": {"name": "10.0.0.1"},
 "spec": {"nodes": [
  {"id": "socket-0", "type": "Socket", "attributes": {}},
  {"id": "socket-1", "type": "Socket", "attributes": {}},
  {"id": "numa-0", "type": "NUMANode", "attributes": {}},
  {"id": "coregroup-0", "type": "CoreGroup", "attributes": {"status": "free"}},
  {"id": "core-0", "type": "CPUCore", "attributes": {"status": "free"}},
  {"id": "core-1", "type": "CPUCore", "attributes": {"status": "free"}},
  {"id": "gpu-0", "type": "GPU", "attributes": {"status": "used", "usedBy": "team/pod \"a\""}},
  {"id": "numa-1", "type": "NUMANode", "attributes": {}},
  {"id": "gpu-1", "type": "GPU", "attributes": {"status": "failed"}}],
 "edges": [
  {"source": "socket-0", "target": "coregroup-0", "type": "host"},
  {"source": "coregroup-0", "target": "numa-0", "type": "localized"},
  {"source": "coregroup-0", "target": "core-0", "type": "contain"},
  {"source": "coregroup-0", "target": "core-1", "type": "contain"},
  {"source": "gpu-0", "target": "numa-0", "type": "nearby"},
  {"source": "socket-1", "target": "numa-1", "type": "host"},
  {"source": "gpu-1", "target": "numa-1", "type": "nearby"}]}}
)");
}

TEST_CASE("written FlexTopo objects are read back", "[io]") {
    for (const auto* const name : {"rtx4090x8", "a100x8", "h100x8"}) {
        auto graph = *HardwareGraph::preset(name);
        graph.allocate(0b0110, "a/b");
        graph.set_failed(2);
        graph.set_failed(5);
        const auto text = io::flextopo_to_json(graph, "node-1");
        const auto [read, notes] = io::flextopo_from_text(text);
        CHECK(notes.empty());
        CHECK(table_2(read) == table_2(graph));
        CHECK(table_2(io::flextopo_from_text(io::flextopo_to_json(read, "x")).graph) == table_2(read));
    }
}

TEST_CASE("names of FlexTopo objects", "[io]") {
    const auto graph = *HardwareGraph::preset("a100x8");
    for (const auto* const name : {"", "Node", "a b", "a..b", "-a"})
        CHECK_THROWS_WITH(io::flextopo_to_json(graph, name), Mentions("name Kubernetes accepts"));
}

TEST_CASE("recorded machines survive as FlexTopo objects", "[io]") {
    int machines = 0;
    const std::pair<const char*, const char*> kinds[] = {
        {"nvidia-smi-topo", ".txt"}, {"nccl-topo", ".xml"}, {"hwloc", ".xml"}, {"flextopo", ".yaml"}};
    for (const auto& [folder, extension] : kinds)
        for (const auto& file : testing_support::real_files(folder, extension)) {
            std::optional<io::HardwareReading> reading;
            try {
                reading = io::read_hardware(file.string());
            } catch (const std::exception&) {
                continue;  // what is no machine, or needs a library that is not here: other tests say which
            }
            INFO(file.string());
            ++machines;
            const auto [read, notes] = io::flextopo_from_text(io::flextopo_to_json(reading->graph, "n"));
            CHECK(table_2(read) == table_2(reading->graph));
        }
    if (machines == 0) WARN("recorded machines are not here: set GPUSCHED_DATA");
}
