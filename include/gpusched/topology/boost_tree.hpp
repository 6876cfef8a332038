// SPDX-License-Identifier: Apache-2.0
// The network tree as a Boost.Graph, for callers who want to run its algorithms. Heavy to compile: include on demand.
#pragma once

#include <gpusched/core/ids.hpp>

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace gpusched::topology {

/// Bundled with every vertex.
struct BoostTreeVertex {
    std::string name{};                ///< of a domain; empty for the root and for nodes
    NodeId node = none<NodeId>;        ///< at a leaf
    DomainId domain = none<DomainId>;  ///< among those of its level; a node's index; `none` for the root
};

/// Edges lead from the root downwards, to domains before nodes. Vertex descriptors are the indices of
/// `NetworkTree::Vertex`; 0 is the root. All edges are one array by source and one by target, as suits a graph that never
/// changes. Models BidirectionalGraph, VertexListGraph and EdgeListGraph.
struct BoostTree
    : boost::compressed_sparse_row_graph<boost::bidirectionalS, BoostTreeVertex, boost::no_property,
                                         boost::no_property, std::size_t, std::uint32_t> {
    using compressed_sparse_row_graph::compressed_sparse_row_graph;
};

}  // namespace gpusched::topology
