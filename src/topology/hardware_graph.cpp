// SPDX-License-Identifier: Apache-2.0
// Builds and checks the graph of a machine, computes its masks and tables, answers queries and applies
// changes.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/topology/boost_graph.hpp>
#include <gpusched/topology/hardware_graph.hpp>

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/property_map/property_map.hpp>
#include <boost/range/iterator_range.hpp>

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

namespace gpusched::topology {
namespace detail {

using HardwareVertexId = BoostHardware::vertex_descriptor;
using HardwareEdgeId = BoostHardware::edge_descriptor;

constexpr double no_bottleneck = std::numeric_limits<double>::infinity();

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

static std::string vertex_text(const HardwareVertex& v) {
    return std::string(enum_name(v.kind)) + " " + std::to_string(v.id);
}

/// An edge of this relation can connect vertices of these kinds.
struct PossibleEdge {
    HardwareRelation relation;
    HardwareKind upper, lower;
};
constexpr std::array<PossibleEdge, 12> possible_edges{{
    {HardwareRelation::hosts, HardwareKind::socket, HardwareKind::core_group},
    {HardwareRelation::hosts, HardwareKind::socket, HardwareKind::numa_node},
    {HardwareRelation::contains, HardwareKind::core_group, HardwareKind::core},
    {HardwareRelation::localized, HardwareKind::numa_node, HardwareKind::core_group},
    {HardwareRelation::nearby, HardwareKind::numa_node, HardwareKind::gpu},
    {HardwareRelation::pcie, HardwareKind::numa_node, HardwareKind::pcie_root},
    {HardwareRelation::pcie, HardwareKind::pcie_root, HardwareKind::pcie_switch},
    {HardwareRelation::pcie, HardwareKind::pcie_root, HardwareKind::gpu},
    {HardwareRelation::pcie, HardwareKind::pcie_switch, HardwareKind::pcie_switch},
    {HardwareRelation::pcie, HardwareKind::pcie_switch, HardwareKind::gpu},
    {HardwareRelation::nvlink, HardwareKind::gpu, HardwareKind::gpu},
    {HardwareRelation::interconnect, HardwareKind::socket, HardwareKind::socket},
}};

static bool is_possible(HardwareRelation relation, HardwareKind upper, HardwareKind lower) {
    return std::ranges::any_of(possible_edges, [&](const PossibleEdge& edge) {
        return edge.relation == relation && edge.upper == upper && edge.lower == lower;
    });
}

static HardwareEdgeId edge_at(const BoostHardware& graph, std::size_t number) {
    return *(boost::edges(graph).first + static_cast<std::ptrdiff_t>(number));
}

/// Calls `visit` for every edge of that relation, with its end of that kind and its other end.
template <class Visit>
void for_each_edge(const BoostHardware& graph, HardwareRelation relation, HardwareKind kind, Visit&& visit) {
    for (const auto e : boost::make_iterator_range(boost::edges(graph))) {
        if (graph[e].relation != relation) continue;
        const auto a = boost::source(e, graph), b = boost::target(e, graph);
        graph[a].kind == kind ? visit(a, b) : visit(b, a);
    }
}

/// Returns the socket of every core group, NUMA node and GPU, by vertex; -1 if there is none. NUMA nodes are
/// in the sockets of their core groups, or in one directly.
static std::vector<int> sockets_of(const BoostHardware& graph) {
    std::vector<int> socket_of(boost::num_vertices(graph), -1);
    for_each_edge(graph, HardwareRelation::hosts, HardwareKind::socket,
                  [&](auto socket, auto hosted) { socket_of[hosted] = graph[socket].id; });
    for_each_edge(graph, HardwareRelation::localized, HardwareKind::numa_node, [&](auto numa, auto group) {
        const int socket = socket_of[group];
        if (socket < 0) return;
        if (socket_of[numa] >= 0 && socket_of[numa] != socket)
            throw InvalidInput("numa_node " + std::to_string(graph[numa].id) + ": lies in sockets " +
                               std::to_string(socket_of[numa]) + " and " + std::to_string(socket));
        socket_of[numa] = socket;
    });
    for_each_edge(graph, HardwareRelation::nearby, HardwareKind::gpu,
                  [&](auto gpu, auto numa) { socket_of[gpu] = socket_of[numa]; });
    return socket_of;
}

/// Copies the holder of a vertex from `known` to `reading`, which has no holders. A vertex can be allocated
/// without a named holder.
static void take_holder(const HardwareVertex& known, HardwareVertex& reading) {
    reading.used_by = known.used_by;
    if (reading.status == HardwareStatus::failed) return;
    reading.status = known.status != HardwareStatus::failed ? known.status
                     : known.used_by.empty()                ? HardwareStatus::free
                                                            : HardwareStatus::allocated;
}

/// Copies the holders of cores and core groups from `known` to `vertices`, those of `reading`, which has no
/// holders. Cores are matched by id. Core groups are matched by id if the group has the same cores in both
/// graphs.
static void keep_core_holders(const BoostHardware& known, const BoostHardware& reading,
                              std::vector<HardwareVertex>& vertices) {
    using Kind = HardwareKind;
    struct Unit {
        std::size_t vertex = 0;
        std::set<int> cores{};  // only for groups
    };
    const auto units_of = [](const BoostHardware& graph) {
        std::map<std::pair<Kind, int>, Unit> units;
        for (std::size_t v = 0; v < boost::num_vertices(graph); ++v)
            if (graph[v].kind == Kind::core || graph[v].kind == Kind::core_group)
                units[{graph[v].kind, graph[v].id}].vertex = v;
        for_each_edge(graph, HardwareRelation::contains, Kind::core_group, [&](auto group, auto core) {
            units[{Kind::core_group, graph[group].id}].cores.insert(graph[core].id);
        });
        return units;
    };
    const auto before = units_of(known);
    for (const auto& [key, unit] : units_of(reading)) {
        const auto found = before.find(key);
        if (found != before.end() && found->second.cores == unit.cores)
            take_holder(known[found->second.vertex], vertices[unit.vertex]);
    }
}

static std::optional<int> sole_holder(const std::vector<GpuMask>& masks, GpuMask gpus) {
    if (gpus == 0) return std::nullopt;
    for (std::size_t i = 0; i < masks.size(); ++i)
        if ((gpus & ~masks[i]) == 0) return static_cast<int>(i);
    return std::nullopt;
}

}  // namespace detail

GPUSCHED_EXPORT HardwareGraph::HardwareGraph(std::vector<HardwareVertex> vertices, std::vector<Link> links)
    : graph_(std::make_unique<BoostHardware>()) {
    Problems problems;
    std::set<std::pair<HardwareKind, int>> seen;
    constexpr int most_ids = 1 << 16;
    for (const auto& v : vertices) {
        const int most = v.kind == HardwareKind::gpu ? max_gpus_per_node - 1 : most_ids;
        if (v.id < 0 || v.id > most)
            problems.add(bad_value(std::string(enum_name(v.kind)) + " id", std::to_string(v.id),
                                   "0 to " + std::to_string(most)));
        if (!seen.insert({v.kind, v.id}).second) problems.add(detail::vertex_text(v) + ": exists twice");
    }
    std::set<std::pair<Vertex, HardwareRelation>> with_upper;  // vertices and their relations upwards
    for (const auto& link : links) {
        if (link.a >= vertices.size() || link.b >= vertices.size()) {
            problems.add("hardware graph: an edge ends at a vertex that is not among the vertices");
            continue;
        }
        const auto& a = vertices[link.a];
        const auto& b = vertices[link.b];
        const auto relation = link.edge.relation;
        const bool downwards = detail::is_possible(relation, a.kind, b.kind);
        const bool possible =
            link.a != link.b && (downwards || detail::is_possible(relation, b.kind, a.kind));
        if (!possible)
            problems.add(std::string("edge '") + enum_name(relation) + "' between " + detail::vertex_text(a) +
                         " and " + detail::vertex_text(b) + ": such vertices have no such relation");
        if (!(link.edge.bandwidth_gb_s > 0))
            problems.add(bad_value("bandwidth_gb_s", number_text(link.edge.bandwidth_gb_s), "more than 0",
                                   detail::vertex_text(a) + " to " + detail::vertex_text(b)));
        using R = HardwareRelation;
        const bool sole = relation == R::hosts || relation == R::contains || relation == R::localized ||
                          relation == R::nearby;
        if (possible && sole && !with_upper.insert({downwards ? link.b : link.a, relation}).second)
            problems.add(detail::vertex_text(downwards ? b : a) + ": has a second edge '" +
                         enum_name(relation) + "', to " + detail::vertex_text(downwards ? a : b));
    }
    problems.throw_if_any();
    for (auto& v : vertices) boost::add_vertex(std::move(v), *graph_);
    for (const auto& link : links) boost::add_edge(link.a, link.b, link.edge, *graph_);
    index_graph();
}

GPUSCHED_EXPORT HardwareGraph::HardwareGraph(const Hardware& hardware, const HardwareGraphOptions& options)
    : HardwareGraph([&] {
          require_fields(options);

          std::vector<HardwareVertex> vertices;
          std::vector<Link> links;
          using K = HardwareKind;
          using R = HardwareRelation;
          const auto add = [&](K kind, int id) {
              vertices.push_back({.kind = kind, .id = id});
              return vertices.size() - 1;
          };
          const auto join = [&](Vertex a, Vertex b, R relation,
                                double gb_s = std::numeric_limits<double>::infinity()) {
              links.push_back({a, b, {relation, gb_s}});
          };
          std::map<int, Vertex> sockets;
          for (const auto& numa : hardware.numa_nodes)
              if (!sockets.contains(numa.socket)) sockets[numa.socket] = add(K::socket, numa.socket);
          for (auto i = sockets.begin(); i != sockets.end(); ++i)
              for (auto j = std::next(i); j != sockets.end(); ++j)
                  join(i->second, j->second, R::interconnect, options.interconnect_gb_s);
          int groups = 0, cores = 0, roots = 0;
          std::vector<Vertex> gpus;
          for (std::size_t n = 0; n < hardware.numa_nodes.size(); ++n) {
              const auto& numa = hardware.numa_nodes[n];
              const auto at = add(K::numa_node, static_cast<int>(n));
              const auto socket = sockets.at(numa.socket);
              if (numa.cores == 0) join(socket, at, R::hosts);
              for (int core = 0; core < numa.cores; ++core) {
                  if (core % options.core_group_size == 0) {
                      const auto group = add(K::core_group, groups++);
                      join(socket, group, R::hosts);
                      join(group, at, R::localized);
                      // Its cores are added after it, so that the group directly precedes them.
                      for (int c = core; c < std::min(core + options.core_group_size, numa.cores); ++c)
                          join(group, add(K::core, cores++), R::contains);
                  }
              }
              int on_root = 0;
              Vertex root = 0;
              for_each_gpu(numa.gpus, [&](int g) {
                  if (on_root == 0) join(at, root = add(K::pcie_root, roots++), R::pcie);
                  const auto gpu = add(K::gpu, g);
                  join(gpu, at, R::nearby, options.pcie_gb_s);
                  join(root, gpu, R::pcie, options.pcie_gb_s);
                  if (++on_root == options.gpus_per_pcie_root) on_root = 0;
                  gpus.push_back(gpu);
              });
          }
          if (options.nvlink_gb_s)
              for (std::size_t i = 0; i < gpus.size(); ++i)
                  for (std::size_t j = i + 1; j < gpus.size(); ++j)
                      join(gpus[i], gpus[j], R::nvlink, *options.nvlink_gb_s);
          return HardwareGraph(std::move(vertices), std::move(links));
      }()) {}

GPUSCHED_EXPORT std::optional<HardwareGraph> HardwareGraph::preset(std::string_view name) {
    const auto hardware = hardware_preset(name);
    if (!hardware) return std::nullopt;
    HardwareGraphOptions options;
    if (name != "rtx4090x8") {
        options.gpus_per_pcie_root = 2;
        options.nvlink_gb_s = name == "h100x8" ? 450 : 300;
    }
    if (name == "h100x8") options.pcie_gb_s = 63;
    return HardwareGraph(*hardware, options);
}

GPUSCHED_EXPORT HardwareGraph::HardwareGraph(const HardwareGraph& other)
    : graph_(std::make_unique<BoostHardware>(*other.graph_)), gpus_(other.gpus_),
      gpu_vertex_(other.gpu_vertex_), masks_(other.masks_), distance_(other.distance_),
      bandwidth_(other.bandwidth_), row_(other.row_) {}
GPUSCHED_EXPORT HardwareGraph::HardwareGraph(HardwareGraph&&) noexcept = default;
GPUSCHED_EXPORT HardwareGraph& HardwareGraph::operator=(const HardwareGraph& other) {
    return *this = HardwareGraph(other);
}
GPUSCHED_EXPORT HardwareGraph& HardwareGraph::operator=(HardwareGraph&&) noexcept = default;
GPUSCHED_EXPORT HardwareGraph::~HardwareGraph() = default;

GPUSCHED_EXPORT std::vector<HardwareGraph::Vertex> HardwareGraph::vertices() const {
    std::vector<Vertex> all(boost::num_vertices(*graph_));
    std::iota(all.begin(), all.end(), Vertex{0});
    return all;
}
GPUSCHED_EXPORT std::vector<HardwareGraph::Edge> HardwareGraph::edges() const {
    std::vector<Edge> all(boost::num_edges(*graph_));
    std::iota(all.begin(), all.end(), Edge{0});
    return all;
}
GPUSCHED_EXPORT const HardwareVertex& HardwareGraph::vertex(Vertex v) const { return (*graph_)[v]; }
GPUSCHED_EXPORT const HardwareEdge& HardwareGraph::edge(Edge e) const {
    return (*graph_)[detail::edge_at(*graph_, e)];
}
GPUSCHED_EXPORT HardwareGraph::Vertex HardwareGraph::source(Edge e) const {
    return boost::source(detail::edge_at(*graph_, e), *graph_);
}
GPUSCHED_EXPORT HardwareGraph::Vertex HardwareGraph::target(Edge e) const {
    return boost::target(detail::edge_at(*graph_, e), *graph_);
}

GPUSCHED_EXPORT void HardwareGraph::index_graph() {
    const auto& graph = *graph_;
    const auto count = boost::num_vertices(graph);
    const auto socket_of = detail::sockets_of(graph);
    std::vector<int> root_of(count, -1);
    const auto mask = [](std::vector<GpuMask>& masks, int id) -> GpuMask& {
        const auto i = static_cast<std::size_t>(id);
        if (i >= masks.size()) masks.resize(i + 1);
        return masks[i];
    };
    for (Vertex v = 0; v < count; ++v) {
        const int id = graph[v].id;
        if (graph[v].kind == HardwareKind::numa_node) mask(masks_.numa, id);
        if (graph[v].kind == HardwareKind::socket) mask(masks_.socket, id);
        if (graph[v].kind == HardwareKind::gpu) {
            gpus_ |= gpu_bit(id);
            gpu_vertex_[static_cast<std::size_t>(id)] = v;
        }
        if (graph[v].kind == HardwareKind::pcie_root) {
            mask(masks_.pcie_root, id);
            const auto hops = detail::hops_from(graph, v, detail::PcieEdges{&graph});
            for (Vertex below = 0; below < count; ++below)
                if (hops[below] >= 0) root_of[below] = id;
        }
    }
    detail::for_each_edge(graph, HardwareRelation::nearby, HardwareKind::gpu, [&](Vertex gpu, Vertex numa) {
        mask(masks_.numa, graph[numa].id) |= gpu_bit(graph[gpu].id);
    });
    for_each_gpu(gpus_, [&](int g) {
        const auto v = gpu_vertex(g);
        if (socket_of[v] >= 0) mask(masks_.socket, socket_of[v]) |= gpu_bit(g);
        if (root_of[v] >= 0) mask(masks_.pcie_root, root_of[v]) |= gpu_bit(g);
    });
    refresh_state();

    row_ = static_cast<std::size_t>(std::bit_width(gpus_));
    distance_.assign(row_ * row_, -1);
    bandwidth_.assign(row_ * row_, 0);
    for_each_gpu(gpus_, [&](int g) {
        const auto from = gpu_vertex(g);
        const auto hops = detail::hops_from(graph, from, detail::TrafficEdges{&graph, from});
        const auto width = detail::widths_from(graph, from, detail::TrafficEdges{&graph, from});
        for_each_gpu(gpus_, [&](int h) {
            distance_[pair(g, h)] = hops[gpu_vertex(h)];
            bandwidth_[pair(g, h)] = width[gpu_vertex(h)];
        });
    });
}

GPUSCHED_EXPORT void HardwareGraph::refresh_state() {
    masks_.healthy = masks_.free = 0;
    for_each_gpu(gpus_, [&](int g) {
        const auto status = (*graph_)[gpu_vertex(g)].status;
        if (status != HardwareStatus::failed) masks_.healthy |= gpu_bit(g);
        if (status == HardwareStatus::free) masks_.free |= gpu_bit(g);
    });
}

GPUSCHED_EXPORT Hardware HardwareGraph::hardware() const {
    const auto& graph = *graph_;
    const auto socket_of = detail::sockets_of(graph);
    std::vector<int> cores_of(boost::num_vertices(graph));
    detail::for_each_edge(graph, HardwareRelation::contains, HardwareKind::core_group,
                          [&](Vertex group, Vertex) { ++cores_of[group]; });
    detail::for_each_edge(graph, HardwareRelation::localized, HardwareKind::numa_node,
                          [&](Vertex numa, Vertex group) { cores_of[numa] += cores_of[group]; });
    std::map<int, NumaNode> by_id;
    for (const auto v : vertices())
        if (const int id = graph[v].id; graph[v].kind == HardwareKind::numa_node)
            by_id[id] = {socket_of[v], cores_of[v], masks_.numa[static_cast<std::size_t>(id)]};
    Problems problems;
    Hardware out;
    GpuMask placed = 0;
    for (auto& [id, numa] : by_id) {
        if (numa.socket < 0 && (numa.gpus != 0 || numa.cores != 0))
            problems.add("numa_node " + std::to_string(id) + ": is in no socket");
        numa.socket = std::max(numa.socket, 0);
        placed |= numa.gpus;
        out.numa_nodes.push_back(numa);
    }
    for_each_gpu(gpus_ & ~placed,
                 [&](int g) { problems.add("gpu " + std::to_string(g) + ": is near no NUMA node"); });
    problems.throw_if_any();
    return out;
}

// Questions -------------------------------------------------------------------------------------------------

GPUSCHED_EXPORT HardwareGraph::Vertex HardwareGraph::gpu_vertex(int gpu) const {
    if (gpu < 0 || gpu >= max_gpus_per_node || (gpus_ & gpu_bit(gpu)) == 0)
        throw InvalidInput(bad_value("gpu", std::to_string(gpu), "a GPU of this machine"));
    return gpu_vertex_[static_cast<std::size_t>(gpu)];
}

GPUSCHED_EXPORT std::optional<int> HardwareGraph::distance(int a, int b) const {
    (void)gpu_vertex(a), (void)gpu_vertex(b);
    const int hops = distance_[pair(a, b)];
    return hops < 0 ? std::nullopt : std::optional(hops);
}
GPUSCHED_EXPORT double HardwareGraph::bandwidth(int a, int b) const {
    (void)gpu_vertex(a), (void)gpu_vertex(b);
    return bandwidth_[pair(a, b)];
}
GPUSCHED_EXPORT double HardwareGraph::bottleneck_bandwidth(GpuMask gpus) const {
    double worst = detail::no_bottleneck;
    for_each_gpu(gpus, [&](int a) {
        for_each_gpu(gpus & ~first_gpus(a + 1),
                     [&](int b) { worst = std::min(worst, bandwidth_[pair(a, b)]); });
    });
    return worst;
}
GPUSCHED_EXPORT std::optional<int> HardwareGraph::numa_node_of(GpuMask gpus) const {
    return detail::sole_holder(masks_.numa, gpus);
}
GPUSCHED_EXPORT std::optional<int> HardwareGraph::socket_of(GpuMask gpus) const {
    return detail::sole_holder(masks_.socket, gpus);
}
GPUSCHED_EXPORT std::optional<int> HardwareGraph::pcie_root_of(GpuMask gpus) const {
    return detail::sole_holder(masks_.pcie_root, gpus);
}
GPUSCHED_EXPORT GpuLocality HardwareGraph::locality(GpuMask gpus) const {
    if (gpu_count(gpus) < 2 || numa_node_of(gpus)) return GpuLocality::numa;
    return socket_of(gpus) ? GpuLocality::socket : GpuLocality::cross;
}

GPUSCHED_EXPORT std::optional<GpuMask> HardwareGraph::best_gpus(int count, GpuMask from) const {
    require_range("count", count, 0, max_gpus_per_node);
    const auto candidates = static_cast<GpuMask>(from & masks_.healthy);
    if (gpu_count(candidates) < count) return std::nullopt;
    if (count == 0) return GpuMask{0};
    constexpr int no_path = 1 << 20;
    std::optional<std::tuple<GpuLocality, double, int, GpuMask>> best;
    const auto judge = [&](GpuMask chosen) {
        int total = 0;
        for_each_gpu(chosen, [&](int a) {
            for_each_gpu(chosen & ~first_gpus(a + 1), [&](int b) {
                const int hops = distance_[pair(a, b)];
                total += hops < 0 ? no_path : hops;
            });
        });
        return std::tuple(locality(chosen), -bottleneck_bandwidth(chosen), total, chosen);
    };
    for_each_promising_gpu_set(candidates, count, judge, [&](GpuMask chosen) {
        const auto now = judge(chosen);
        if (!best || now < *best) best = now;
    });
    return std::get<3>(*best);
}

// Changes ---------------------------------------------------------------------------------------------------

GPUSCHED_EXPORT void HardwareGraph::set_failed(int gpu, bool failed) {
    auto& v = (*graph_)[gpu_vertex(gpu)];
    v.status = failed              ? HardwareStatus::failed
               : v.used_by.empty() ? HardwareStatus::free
                                   : HardwareStatus::allocated;
    refresh_state();
}

GPUSCHED_EXPORT void HardwareGraph::allocate(GpuMask gpus, const std::string& user) {
    if (user.empty()) throw InvalidInput("user: ''; expected a name");
    if (const auto taken = gpus & ~masks_.free; taken != 0)
        throw InvalidInput(
            bad_value("gpus", std::to_string(std::countr_zero(taken)), "free, healthy GPUs of this machine"));
    for_each_gpu(gpus, [&](int g) {
        auto& v = (*graph_)[gpu_vertex(g)];
        v.status = HardwareStatus::allocated;
        v.used_by = user;
    });
    refresh_state();
}

GPUSCHED_EXPORT GpuMask HardwareGraph::release(std::string_view user) {
    GpuMask released = 0;
    for_each_gpu(gpus_, [&](int g) {
        auto& v = (*graph_)[gpu_vertex(g)];
        if (v.used_by.empty() || v.used_by != user) return;
        v.used_by.clear();
        if (v.status == HardwareStatus::allocated) v.status = HardwareStatus::free;
        released |= gpu_bit(g);
    });
    refresh_state();
    return released;
}

GPUSCHED_EXPORT std::vector<HardwareChange> HardwareGraph::reconcile(const HardwareGraph& observed) {
    using Kind = HardwareChange::Kind;
    std::vector<HardwareChange> changes;
    const auto place = [](const HardwareGraph& graph, int g) {
        return std::tuple(graph.numa_node_of(gpu_bit(g)), graph.socket_of(gpu_bit(g)),
                          graph.pcie_root_of(gpu_bit(g)));
    };
    // The reading becomes the graph. GPUs that are missing from it and the data that only this graph has are
    // carried over.
    std::vector<HardwareVertex> vertices;
    std::vector<Link> links;
    for (const auto v : observed.vertices()) vertices.push_back(observed.vertex(v));
    for (const auto e : observed.edges())
        links.push_back({observed.source(e), observed.target(e), observed.edge(e)});
    for_each_gpu(observed.gpus_ & ~gpus_, [&](int g) { changes.push_back({Kind::gpu_added, g}); });
    for_each_gpu(gpus_ & observed.gpus_, [&](int g) {
        const auto& old = (*graph_)[gpu_vertex(g)];
        auto& now = vertices[observed.gpu_vertex(g)];
        const bool was_failed = old.status == HardwareStatus::failed,
                   is_failed = now.status == HardwareStatus::failed;
        if (is_failed && !was_failed) changes.push_back({Kind::gpu_failed, g});
        if (!is_failed && was_failed) changes.push_back({Kind::gpu_recovered, g});
        if (!old.uuid.empty() && !now.uuid.empty() && old.uuid != now.uuid)
            changes.push_back({Kind::gpu_replaced, g});
        if (place(*this, g) != place(observed, g)) changes.push_back({Kind::gpu_moved, g});
        if (now.uuid.empty()) now.uuid = old.uuid;
        if (now.model.empty()) now.model = old.model;
        if (now.memory_mib == 0) now.memory_mib = old.memory_mib;
        detail::take_holder(old, now);
    });
    detail::keep_core_holders(*graph_, *observed.graph_, vertices);
    for_each_gpu(gpus_ & ~observed.gpus_, [&](int g) {
        const auto self = gpu_vertex(g);
        auto& gone = vertices.emplace_back((*graph_)[self]);
        if (gone.status != HardwareStatus::failed) changes.push_back({Kind::gpu_failed, g});
        gone.status = HardwareStatus::failed;
        // The GPU keeps its place if the place still exists.
        for (const auto e : boost::make_iterator_range(boost::out_edges(self, *graph_))) {
            const auto& other = (*graph_)[boost::target(e, *graph_)];
            for (Vertex v = 0; v + 1 < vertices.size(); ++v)
                if (vertices[v].kind == other.kind && vertices[v].id == other.id)
                    links.push_back({vertices.size() - 1, v, (*graph_)[e]});
        }
    });
    *this = HardwareGraph(std::move(vertices), std::move(links));
    std::ranges::sort(changes, {}, [](const HardwareChange& c) { return std::pair(c.kind, c.gpu); });
    return changes;
}

}  // namespace gpusched::topology
