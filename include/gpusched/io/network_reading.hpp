// SPDX-License-Identifier: Apache-2.0
// What the readers of networks give.
#pragma once

#include <gpusched/model/spec.hpp>
#include <gpusched/topology/network_tree.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace gpusched::io {

/// A network as it was read: which nodes are below which domains.
struct NetworkReading {
    struct Node {
        std::string name{};
        std::vector<std::string>
            network{};  ///< domains from the root down, as in NodeSpec; empty = not known
        bool operator==(const Node&) const = default;
    };
    std::vector<Node> nodes{};  ///< in the order of the text; names are unique
    std::vector<std::string>
        levels{};  ///< what the levels are called, from the top; empty when the text has no words
    std::vector<std::string> notes{};  ///< what was inferred, or what a tree cannot hold
};

/// The tree over the nodes of a reading; NodeId is the position in `nodes`. O(nodes x levels).
/// @throws InvalidInput when there are more than 16 levels
[[nodiscard]] topology::NetworkTree network_tree(const NetworkReading& reading);

/// Sets `NodeSpec::network` of every node that the reading names; the others keep theirs.
/// @return how many nodes were set
/// Complexity: O(nodes log nodes).
std::size_t set_network(ClusterSpec& cluster, const NetworkReading& reading);

}  // namespace gpusched::io
