// SPDX-License-Identifier: Apache-2.0
// Writes the network tree as DOT text.
#include "topology/dot_text.hpp"

#include <gpusched/config.hpp>
#include <gpusched/topology/dot.hpp>

#include <string_view>

namespace gpusched::topology {
namespace detail {

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

}  // namespace gpusched::topology
