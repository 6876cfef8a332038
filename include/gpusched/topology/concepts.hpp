// SPDX-License-Identifier: Apache-2.0
// NetworkGraph: what a network topology must offer to be used by this library.
#pragma once

#include <gpusched/core/ids.hpp>

#include <concepts>
#include <iterator>
#include <string>

namespace gpusched::topology {

/// A sequence of vertices that a range-for can walk.
template <class R, class Vertex>
concept VertexRange = requires(R&& range) {
    { *std::begin(range) } -> std::convertible_to<Vertex>;
    { std::begin(range) != std::end(range) } -> std::convertible_to<bool>;
};

/// A rooted tree whose inner vertices are domains (clusters, switches, racks) and whose leaves are nodes.
///
/// `root()` stands above all domains and is none itself; `children(v)` are the vertices right below `v`;
/// `node(v)` is the node at a leaf and `none<NodeId>` for a domain; `name(v)` is the name of a domain. Depths may
/// differ from branch to branch. `NetworkTree` is one; boost_network.hpp makes one of any Boost.Graph.
template <class G>
concept NetworkGraph =
    std::copyable<typename G::Vertex> && requires(const G& graph, const typename G::Vertex& v) {
        { graph.root() } -> std::convertible_to<typename G::Vertex>;
        { graph.children(v) } -> VertexRange<typename G::Vertex>;
        { graph.node(v) } -> std::convertible_to<NodeId>;
        { graph.name(v) } -> std::convertible_to<std::string>;
    };

}  // namespace gpusched::topology
