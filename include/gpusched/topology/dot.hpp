// SPDX-License-Identifier: Apache-2.0
// Draws the network tree and machines as DOT files for Graphviz.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/model/inventory.hpp>
#include <gpusched/topology/hardware_graph.hpp>
#include <gpusched/topology/network_tree.hpp>

#include <string>
#include <type_traits>

namespace gpusched::topology {

/// Options of to_dot().
struct DotOptions {
    bool nodes = true;  ///< draw the nodes; if false, every domain shows the number of its nodes
};
template <class F>
constexpr void visit_fields(std::type_identity<DotOptions>, F&& field) {
    field("nodes", &DotOptions::nodes);
}

/// Returns the tree in the DOT language: domains as boxes, nodes as ellipses with their GPUs.
///
/// Nodes of unknown position have no edges. Vertices are in ascending order, so equal trees give equal text.
/// @param inventory the inventory from which the tree was built; has the names and GPUs of the nodes
///
/// O(nodes).
[[nodiscard]] std::string to_dot(const NetworkTree& tree, const Inventory& inventory,
                                 const DotOptions& options = {});

/// Options of hardware_to_dot().
struct HardwareDotOptions {
    bool cores = false;  ///< draw every core; if false, a core group shows the number of its cores
};
template <class F>
constexpr void visit_fields(std::type_identity<HardwareDotOptions>, F&& field) {
    field("cores", &HardwareDotOptions::cores);
}

/// Returns the machine in the DOT language. Sockets are clusters around their core groups and NUMA nodes.
/// PCIe roots, switches and GPUs are vertices; GPUs show their model and state. Links show their GB/s if
/// known.
///
/// Vertices and edges are in the graph's order, so equal graphs give equal text. A failed GPU is filled red,
/// an allocated GPU grey.
///
/// O(vertices x edges).
[[nodiscard]] std::string hardware_to_dot(const HardwareGraph& graph, const HardwareDotOptions& options = {});

}  // namespace gpusched::topology
