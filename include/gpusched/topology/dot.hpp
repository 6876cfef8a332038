// SPDX-License-Identifier: Apache-2.0
// to_dot(): draws the network tree as a DOT file for Graphviz.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/model/inventory.hpp>
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

}  // namespace gpusched::topology
