// SPDX-License-Identifier: Apache-2.0
// Writes the network tree and machines as DOT text.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/topology/dot.hpp>

#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace gpusched::topology {
namespace detail {

static std::string dot_quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out + '"';
}

static std::string dot_vertex(NetworkTree::Vertex v) {
    return "v" + std::to_string(static_cast<std::uint32_t>(v));
}

}  // namespace detail

GPUSCHED_EXPORT std::string to_dot(const NetworkTree& tree, const Inventory& inventory,
                                   const DotOptions& options) {
    const auto& table = inventory.nodes;
    std::string out = "digraph network {\n  node [shape=box];\n";
    for (std::uint32_t i = 1; i < tree.vertex_count(); ++i) {
        const NetworkTree::Vertex v{i};
        const auto node = tree.node(v);
        if (node != none<NodeId> && !options.nodes) continue;
        std::string label;
        if (node == none<NodeId>) {
            label = tree.name(v);
            if (!options.nodes) {
                std::int64_t gpus = 0;
                for (const auto below : tree.nodes_under(v)) gpus += table.gpu_count[index(below)];
                label += "\n" + std::to_string(tree.nodes_under(v).size()) + " nodes, " +
                         std::to_string(gpus) + " GPUs";
            }
        } else {
            label = table.names[index(node)];
            const auto model = table.gpu_model[index(node)];
            if (table.gpu_count[index(node)] > 0)
                label += "\n" + std::to_string(table.gpu_count[index(node)]) + " x " +
                         (model == none<GpuModelId> ? "GPU" : inventory.gpu_models[index(model)]);
        }
        out += "  " + detail::dot_vertex(v) + " [label=" + detail::dot_quoted(label) +
               (node != none<NodeId> ? ", shape=ellipse];\n" : "];\n");
        if (tree.parent(v) != NetworkTree::root())
            out += "  " + detail::dot_vertex(tree.parent(v)) + " -> " + detail::dot_vertex(v) + ";\n";
    }
    return out + "}\n";
}

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
