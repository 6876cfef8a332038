// SPDX-License-Identifier: Apache-2.0
// Writes the graph of a machine as DOT text.
#include "topology/dot_text.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/topology/hardware_dot.hpp>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace gpusched::topology {

GPUSCHED_EXPORT std::string hardware_to_dot(const HardwareGraph& graph, const HardwareDotOptions& options) {
    using K = HardwareKind;
    using R = HardwareRelation;
    // The parents of all vertices inside a socket: its core groups and NUMA nodes, the NUMA nodes of its
    // groups, and their cores.
    std::map<HardwareGraph::Vertex, HardwareGraph::Vertex> above;
    std::map<HardwareGraph::Vertex, int> cores_of;
    for (int round = 0; round < 2; ++round)
        for (const auto e : graph.edges()) {
            auto a = graph.source(e), b = graph.target(e);
            const auto relation = graph.edge(e).relation;
            if (relation == R::hosts) {
                if (graph.vertex(b).kind == K::socket) std::swap(a, b);
                above[b] = a;
            } else if (relation == R::localized || relation == R::contains) {
                const auto below = relation == R::localized ? K::numa_node : K::core;
                if (graph.vertex(a).kind == below) std::swap(a, b);
                if (above.contains(a)) above.emplace(b, above.at(a));
                if (relation == R::contains && round == 0) ++cores_of[a];
            }
        }
    const auto drawn = [&](HardwareGraph::Vertex v) {
        return options.cores || graph.vertex(v).kind != K::core;
    };
    const auto name = [](HardwareGraph::Vertex v) { return "h" + std::to_string(v); };
    const auto vertex_text = [&](HardwareGraph::Vertex v) {
        const auto& info = graph.vertex(v);
        std::string label = std::string(enum_name(info.kind)) + " " + std::to_string(info.id);
        if (info.kind == K::core_group) label += "\n" + std::to_string(cores_of[v]) + " cores";
        if (!info.model.empty()) label += "\n" + info.model;
        if (info.memory_mib > 0) label += "\n" + std::to_string(info.memory_mib) + " MiB";
        if (!info.used_by.empty()) label += "\n" + info.used_by;
        std::string text = name(v) + " [label=" + detail::dot_quoted(label);
        if (info.kind == K::gpu) text += ", shape=ellipse";
        if (info.status == HardwareStatus::failed) text += ", style=filled, fillcolor=red";
        if (info.status == HardwareStatus::allocated) text += ", style=filled, fillcolor=lightgrey";
        return text + "];\n";
    };
    std::string out = "graph hardware {\n  compound=true;\n  node [shape=box];\n";
    for (const auto socket : graph.vertices()) {
        if (graph.vertex(socket).kind != K::socket) continue;
        out += "  subgraph cluster_" + name(socket) +
               " {\n    label=" + detail::dot_quoted("socket " + std::to_string(graph.vertex(socket).id)) +
               ";\n    " + name(socket) + " [label=\"\", shape=point];\n";
        for (const auto v : graph.vertices())
            if (const auto found = above.find(v); found != above.end() && found->second == socket && drawn(v))
                out += "    " + vertex_text(v);
        out += "  }\n";
    }
    for (const auto v : graph.vertices())
        if (graph.vertex(v).kind != K::socket && !above.contains(v) && drawn(v)) out += "  " + vertex_text(v);
    for (const auto e : graph.edges()) {
        const auto a = graph.source(e), b = graph.target(e);
        const auto& edge = graph.edge(e);
        if (edge.relation == R::hosts || !drawn(a) || !drawn(b)) continue;  // the cluster shows this relation
        out += "  " + name(a) + " -- " + name(b) + " [";
        if (std::isfinite(edge.bandwidth_gb_s))
            out += "label=\"" + number_text(edge.bandwidth_gb_s) + " GB/s\", ";
        out += std::string("tooltip=") + enum_name(edge.relation);
        if (edge.relation == R::nvlink) out += ", color=green";
        if (edge.relation == R::nearby) out += ", style=dotted";
        out += "];\n";
    }
    return out + "}\n";
}

}  // namespace gpusched::topology
