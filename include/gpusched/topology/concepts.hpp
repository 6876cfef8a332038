// SPDX-License-Identifier: Apache-2.0
// NetworkGraph: the interface that a network topology must offer to this library.
#pragma once

#include <gpusched/core/ids.hpp>

#include <concepts>
#include <iterator>
#include <string>

namespace gpusched::topology {

/// A sequence of vertices that a range-based for loop can visit.
template <class R, class Vertex>
concept VertexRange = requires(R&& range) {
    { *std::begin(range) } -> std::convertible_to<Vertex>;
    { std::begin(range) != std::end(range) } -> std::convertible_to<bool>;
};

/// A rooted tree. Its inner vertices are domains (clusters, switches, racks), its leaves are nodes.
///
/// - `root()` is above all domains and is not a domain.
/// - `children(v)` returns the vertices directly below `v`.
/// - `node(v)` returns the node of a leaf, and `none<NodeId>` for a domain.
/// - `name(v)` returns the name of a domain.
///
/// Branches may differ in depth. `NetworkTree` models this concept; boost_network.hpp adapts any Boost.Graph
/// to it.
template <class G>
concept NetworkGraph =
    std::copyable<typename G::Vertex> && requires(const G& graph, const typename G::Vertex& v) {
        { graph.root() } -> std::convertible_to<typename G::Vertex>;
        { graph.children(v) } -> VertexRange<typename G::Vertex>;
        { graph.node(v) } -> std::convertible_to<NodeId>;
        { graph.name(v) } -> std::convertible_to<std::string>;
    };

}  // namespace gpusched::topology
