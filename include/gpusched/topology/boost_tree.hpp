// SPDX-License-Identifier: Apache-2.0
// BoostTree: the network tree as a Boost.Graph, for use with Boost's algorithms. Slow to compile, so include
// it on demand.
#pragma once

#include <gpusched/core/ids.hpp>

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace gpusched::topology {

/// The bundled property of every vertex.
struct BoostTreeVertex {
    std::string name{};                ///< name of a domain; empty for the root and for nodes
    NodeId node = none<NodeId>;        ///< node of a leaf; `none` otherwise
    DomainId domain = none<DomainId>;  ///< id within its level; a node's index for nodes; `none` for the root
};

/// The tree as a Boost.Graph. Edges lead from the root downwards, first to domains, then to nodes. Vertex
/// descriptors are the indices of `NetworkTree::Vertex`; 0 is the root. Edges are stored in two arrays, by
/// source and by target, because the graph never changes. Models BidirectionalGraph, VertexListGraph and
/// EdgeListGraph.
struct BoostTree
    : boost::compressed_sparse_row_graph<boost::bidirectionalS, BoostTreeVertex, boost::no_property,
                                         boost::no_property, std::size_t, std::uint32_t> {
    using compressed_sparse_row_graph::compressed_sparse_row_graph;
};

}  // namespace gpusched::topology
