// SPDX-License-Identifier: Apache-2.0
// BoostHardware: the graph of a machine as a Boost.Graph, and a view that makes any such graph a
// HardwareTopology. Slow to compile.
#pragma once

#include <gpusched/topology/hardware_concepts.hpp>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graph_traits.hpp>

#include <vector>

namespace gpusched::topology {

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
