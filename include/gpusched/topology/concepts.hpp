// SPDX-License-Identifier: Apache-2.0
// NetworkGraph and HardwareTopology: the interfaces that the graphs of a network and of a machine must
// offer to this library.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/ids.hpp>

#include <concepts>
#include <cstdint>
#include <iterator>
#include <limits>
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
/// Branches may differ in depth. `NetworkTree` models this concept; boost_graph.hpp adapts any Boost.Graph
/// to it.
template <class G>
concept NetworkGraph =
    std::copyable<typename G::Vertex> && requires(const G& graph, const typename G::Vertex& v) {
        { graph.root() } -> std::convertible_to<typename G::Vertex>;
        { graph.children(v) } -> VertexRange<typename G::Vertex>;
        { graph.node(v) } -> std::convertible_to<NodeId>;
        { graph.name(v) } -> std::convertible_to<std::string>;
    };

/// The kind of a vertex in a machine's graph: the five kinds of FlexTopo (Table 2 of that paper), and the
/// parts of PCIe.
enum class HardwareKind : std::uint8_t { socket, core_group, core, numa_node, pcie_root, pcie_switch, gpu };

/// The meaning of an edge. The first four are FlexTopo's: socket hosts core group, core group contains core,
/// core group localized to NUMA node, GPU nearby NUMA node. A socket may also host a NUMA node without cores.
enum class HardwareRelation : std::uint8_t {
    hosts,
    contains,
    localized,
    nearby,
    pcie,          ///< between PCIe roots, PCIe switches and GPUs; between a NUMA node and its PCIe roots
    nvlink,        ///< between two GPUs
    interconnect,  ///< between two sockets
};

/// The state of a vertex that can be allocated.
enum class HardwareStatus : std::uint8_t { free, allocated, failed };

/// The bundled property of every vertex.
struct HardwareVertex {
    HardwareKind kind = HardwareKind::core;
    int id = 0;                 ///< >= 0, unique within the kind; for a GPU its index on the node (0 to 63)
    std::string uuid{};         ///< GPUs only; may be empty
    std::string model{};        ///< GPUs only; may be empty
    std::int64_t memory_mib{};  ///< GPUs only; 0 = unknown
    HardwareStatus status = HardwareStatus::free;  ///< for GPUs, cores and core groups
    std::string used_by{};                         ///< the task that holds the vertex; empty if no task does
    bool operator==(const HardwareVertex&) const = default;
};

/// The bundled property of every edge.
struct HardwareEdge {
    HardwareRelation relation = HardwareRelation::nearby;
    /// GB/s in one direction; infinite if this edge is no bottleneck or its bandwidth is unknown.
    double bandwidth_gb_s = std::numeric_limits<double>::infinity();
    bool operator==(const HardwareEdge&) const = default;
};

/// An undirected graph of one machine.
///
/// - `vertices()` and `edges()` return ranges for loops.
/// - `vertex(v)` and `edge(e)` return the bundled property of a vertex or edge.
/// - `source(e)` and `target(e)` return the ends of an edge.
///
/// `HardwareGraph` reads any model of this concept. boost_graph.hpp adapts any Boost.Graph with these
/// bundled properties.
template <class G>
concept HardwareTopology = std::copyable<typename G::Vertex> &&
                           requires(const G& graph, const typename G::Vertex& v, const typename G::Edge& e) {
                               { graph.vertices() } -> VertexRange<typename G::Vertex>;
                               { graph.edges() } -> VertexRange<typename G::Edge>;
                               { graph.vertex(v) } -> std::convertible_to<HardwareVertex>;
                               { graph.edge(e) } -> std::convertible_to<HardwareEdge>;
                               { graph.source(e) } -> std::convertible_to<typename G::Vertex>;
                               { graph.target(e) } -> std::convertible_to<typename G::Vertex>;
                           };

}  // namespace gpusched::topology
