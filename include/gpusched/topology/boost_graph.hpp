// SPDX-License-Identifier: Apache-2.0
// The networks and machines of this library as graphs of Boost.Graph, and views that let any Boost.Graph
// take their place. Slow to compile, so include it on demand.
#pragma once

#include <gpusched/core/ids.hpp>
#include <gpusched/topology/concepts.hpp>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/graph_traits.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

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

/// A view that makes a graph of Boost.Graph's IncidenceGraph concept a NetworkGraph of this library.
///
/// The graph may have any properties. It needs edges that lead downwards and two functions: `NodeId
/// node_of(vertex)` (`none` for a domain) and a name for domains. The graph must outlive the view.
template <class Graph, std::invocable<typename boost::graph_traits<Graph>::vertex_descriptor> NodeOf,
          std::invocable<typename boost::graph_traits<Graph>::vertex_descriptor> NameOf>
class BoostNetwork {
  public:
    using Vertex = typename boost::graph_traits<Graph>::vertex_descriptor;

    BoostNetwork(const Graph& graph, Vertex root, NodeOf node_of, NameOf name_of)
        : graph_(&graph), root_(root), node_of_(std::move(node_of)), name_of_(std::move(name_of)) {}

    [[nodiscard]] Vertex root() const { return root_; }
    [[nodiscard]] std::vector<Vertex> children(Vertex v) const {
        std::vector<Vertex> out;
        const auto [first, last] = out_edges(v, *graph_);
        for (auto edge = first; edge != last; ++edge) out.push_back(target(*edge, *graph_));
        return out;
    }
    [[nodiscard]] NodeId node(Vertex v) const { return std::invoke(node_of_, v); }
    [[nodiscard]] std::string name(Vertex v) const { return std::invoke(name_of_, v); }

  private:
    const Graph* graph_;
    Vertex root_;
    NodeOf node_of_;
    NameOf name_of_;
};

/// The representation of HardwareGraph. Edges are in insertion order. Access to the n-th edge costs O(1).
struct BoostHardware : boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, HardwareVertex,
                                             HardwareEdge, boost::no_property, boost::vecS> {
    using adjacency_list::adjacency_list;
    using Base = adjacency_list;
};

/// A view of a graph that models Boost.Graph's VertexListGraph and EdgeListGraph. Its bundled properties must
/// be HardwareVertex and HardwareEdge. The graph must outlive the view.
template <class Graph>
class BoostHardwareView {
  public:
    using Vertex = typename boost::graph_traits<Graph>::vertex_descriptor;
    using Edge = typename boost::graph_traits<Graph>::edge_descriptor;

    explicit BoostHardwareView(const Graph& graph) : graph_(&graph) {}

    [[nodiscard]] std::vector<Vertex> vertices() const {
        const auto [first, last] = boost::vertices(*graph_);
        return {first, last};
    }
    [[nodiscard]] std::vector<Edge> edges() const {
        const auto [first, last] = boost::edges(*graph_);
        return {first, last};
    }
    [[nodiscard]] const HardwareVertex& vertex(Vertex v) const { return (*graph_)[v]; }
    [[nodiscard]] const HardwareEdge& edge(const Edge& e) const { return (*graph_)[e]; }
    [[nodiscard]] Vertex source(const Edge& e) const { return boost::source(e, *graph_); }
    [[nodiscard]] Vertex target(const Edge& e) const { return boost::target(e, *graph_); }

  private:
    const Graph* graph_;
};

}  // namespace gpusched::topology
