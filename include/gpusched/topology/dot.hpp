// SPDX-License-Identifier: Apache-2.0
// The network tree as a DOT file for Graphviz.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/model/inventory.hpp>
#include <gpusched/topology/network_tree.hpp>

#include <string>
#include <type_traits>

namespace gpusched::topology {

struct DotOptions {
    bool nodes = true;  ///< draw the nodes; without them every domain shows how many it has
};
template <class F>
constexpr void visit_fields(std::type_identity<DotOptions>, F&& field) {
    field("nodes", &DotOptions::nodes);
}

/// The tree in the DOT language: domains as boxes, nodes as ellipses with their GPUs.
///
/// Nodes of unknown position stand alone. Vertices come in ascending order, so equal trees give equal text.
/// @param inventory the one the tree was built from: names and GPUs of the nodes
/// Complexity: O(nodes).
[[nodiscard]] std::string to_dot(const NetworkTree& tree, const Inventory& inventory,
                                 const DotOptions& options = {});

}  // namespace gpusched::topology
