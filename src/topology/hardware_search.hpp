// SPDX-License-Identifier: Apache-2.0
// Searches in the graph of a machine with algorithms of Boost.Graph. Slow to compile, so include it only in
// .cpp files.
#pragma once

#include <gpusched/topology/boost_hardware.hpp>

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/property_map/property_map.hpp>
#include <boost/range/iterator_range.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

namespace gpusched::topology::detail {

using HardwareVertexId = BoostHardware::vertex_descriptor;
using HardwareEdgeId = BoostHardware::edge_descriptor;

inline constexpr double no_bottleneck = std::numeric_limits<double>::infinity();

/// The edges that traffic of GPU `from` can use. It does not pass through other GPUs, because another task
/// may hold them or they may have failed. Cores are excluded, because they lead to no other vertex.
struct TrafficEdges {
    const BoostHardware* graph = nullptr;
    HardwareVertexId from = 0;
    bool operator()(const HardwareEdgeId& edge) const {
        const auto start = boost::source(edge, *graph);
        return (start == from || (*graph)[start].kind != HardwareKind::gpu) &&
               (*graph)[edge].relation != HardwareRelation::contains;
    }
};

/// The edges from a PCIe root down through switches to GPUs.
struct PcieEdges {
    const BoostHardware* graph = nullptr;
    bool operator()(const HardwareEdgeId& edge) const {
        const auto to = (*graph)[boost::target(edge, *graph)].kind;
        return (*graph)[edge].relation == HardwareRelation::pcie &&
               (*graph)[boost::source(edge, *graph)].kind != HardwareKind::gpu &&
               (to == HardwareKind::pcie_switch || to == HardwareKind::gpu);
    }
};

/// The graph reduced to the edges that `Edges` accepts.
template <class Edges>
using FilteredHardware = boost::filtered_graph<BoostHardware::Base, Edges>;

/// A property map with one value per vertex, for output of Boost's algorithms.
template <class T>
auto by_vertex(std::vector<T>& values) {
    return boost::make_iterator_property_map(values.begin(),
                                             boost::typed_identity_property_map<HardwareVertexId>());
}

/// Returns the number of edges on the shortest path from a vertex to every other vertex, by breadth-first
/// search; -1 if there is no path.
template <class Edges>
std::vector<int> hops_from(const BoostHardware& graph, HardwareVertexId from, Edges edges) {
    std::vector<int> hops(boost::num_vertices(graph), -1);
    hops[from] = 0;
    boost::breadth_first_search(FilteredHardware<Edges>(graph, edges), from,
                                boost::visitor(boost::make_bfs_visitor(
                                    boost::record_distances(by_vertex(hops), boost::on_tree_edge()))));
    return hops;
}

/// Returns the GB/s on the widest path from a vertex to every other vertex; 0 if there is no path. Uses
/// Dijkstra's algorithm: the length of a path is the width of its narrowest edge, and the widest path counts
/// as the shortest.
template <class Edges>
std::vector<double> widths_from(const BoostHardware& graph, HardwareVertexId from, Edges edges) {
    std::vector<double> widths(boost::num_vertices(graph));
    const BoostHardware::Base& base = graph;
    boost::dijkstra_shortest_paths(
        FilteredHardware<Edges>(graph, edges), from,
        boost::weight_map(boost::get(&HardwareEdge::bandwidth_gb_s, base))
            .distance_map(by_vertex(widths))
            .distance_compare(std::greater<double>())
            .distance_combine([](double path, double edge) { return std::min(path, edge); })
            .distance_inf(0.0)
            .distance_zero(no_bottleneck));
    return widths;
}

}  // namespace gpusched::topology::detail
