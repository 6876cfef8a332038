// SPDX-License-Identifier: Apache-2.0
// BoostNetwork: makes any Boost.Graph a NetworkGraph.
#pragma once

#include <gpusched/core/ids.hpp>
#include <gpusched/topology/concepts.hpp>

#include <boost/graph/graph_traits.hpp>

#include <concepts>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::topology {

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

}  // namespace gpusched::topology
