// SPDX-License-Identifier: Apache-2.0
// Checks the graph of a machine, computes its masks and tables, answers queries and applies changes.
#include "topology/hardware_search.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/topology/hardware_graph.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace gpusched::topology {
namespace detail {

static std::string vertex_text(const HardwareVertex& v) {
    return std::string(enum_name(v.kind)) + " " + std::to_string(v.id);
}

// Returns true if an edge between vertices of these kinds can have this meaning.
static bool relation_fits(HardwareRelation relation, HardwareKind a, HardwareKind b) {
    using K = HardwareKind;
    const auto between = [&](K x, K y) { return (a == x && b == y) || (a == y && b == x); };
    switch (relation) {
    case HardwareRelation::hosts:
        return between(K::socket, K::core_group) || between(K::socket, K::numa_node);
    case HardwareRelation::contains:
        return between(K::core_group, K::core);
    case HardwareRelation::localized:
        return between(K::core_group, K::numa_node);
    case HardwareRelation::nearby:
        return between(K::gpu, K::numa_node);
    case HardwareRelation::pcie:
        return between(K::numa_node, K::pcie_root) || between(K::pcie_root, K::pcie_switch) ||
               between(K::pcie_root, K::gpu) || between(K::pcie_switch, K::pcie_switch) ||
               between(K::pcie_switch, K::gpu);
    case HardwareRelation::nvlink:
        return between(K::gpu, K::gpu);
    case HardwareRelation::interconnect:
        return between(K::socket, K::socket);
    }
    return false;
}

static HardwareEdgeId edge_at(const BoostHardware& graph, std::size_t number) {
    return *(boost::edges(graph).first + static_cast<std::ptrdiff_t>(number));
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
    std::map<std::pair<Vertex, HardwareRelation>, Vertex> above;  // relations that are unique per vertex
    const auto only_one = [&](Vertex below, Vertex top, HardwareRelation relation) {
        if (!above.insert({{below, relation}, top}).second)
            problems.add(detail::vertex_text(vertices[below]) + ": has a second edge '" +
                         enum_name(relation) + "', to " + detail::vertex_text(vertices[top]));
    };
    for (const auto& link : links) {
        if (link.a >= vertices.size() || link.b >= vertices.size()) {
            problems.add("hardware graph: an edge ends at a vertex that is not among the vertices");
            continue;
        }
        const auto& a = vertices[link.a];
        const auto& b = vertices[link.b];
        const auto relation = link.edge.relation;
        if (link.a == link.b || !detail::relation_fits(relation, a.kind, b.kind))
            problems.add(std::string("edge '") + enum_name(relation) + "' between " + detail::vertex_text(a) +
                         " and " + detail::vertex_text(b) + ": such vertices have no such relation");
        if (!(link.edge.bandwidth_gb_s > 0))
            problems.add(bad_value("bandwidth_gb_s", number_text(link.edge.bandwidth_gb_s), "more than 0",
                                   detail::vertex_text(a) + " to " + detail::vertex_text(b)));
        using R = HardwareRelation;
        const bool a_above = a.kind == HardwareKind::socket ||
                             (relation == R::contains && a.kind == HardwareKind::core_group) ||
                             (relation != R::hosts && a.kind == HardwareKind::numa_node);
        if (relation == R::hosts || relation == R::contains || relation == R::localized ||
            relation == R::nearby)
            only_one(a_above ? link.b : link.a, a_above ? link.a : link.b, relation);
    }
    problems.throw_if_any();
    for (auto& v : vertices) boost::add_vertex(std::move(v), *graph_);
    for (const auto& link : links) boost::add_edge(link.a, link.b, link.edge, *graph_);
    index_graph();
}

GPUSCHED_EXPORT HardwareGraph::HardwareGraph(const HardwareGraph& other)
    : graph_(std::make_unique<BoostHardware>(*other.graph_)), gpu_vertex_(other.gpu_vertex_),
      masks_(other.masks_), distance_(other.distance_), bandwidth_(other.bandwidth_), row_(other.row_) {}
GPUSCHED_EXPORT HardwareGraph::HardwareGraph(HardwareGraph&&) noexcept = default;
GPUSCHED_EXPORT HardwareGraph& HardwareGraph::operator=(HardwareGraph other) noexcept {
    std::swap(graph_, other.graph_);
    std::swap(gpu_vertex_, other.gpu_vertex_);
    std::swap(masks_, other.masks_);
    std::swap(distance_, other.distance_);
    std::swap(bandwidth_, other.bandwidth_);
    std::swap(row_, other.row_);
    return *this;
}
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
    gpu_vertex_.fill(-1);
    std::vector<int> numa_of(count, -1), socket_of(count, -1), root_of(count, -1);
    for (Vertex v = 0; v < count; ++v)
        if (graph[v].kind == HardwareKind::gpu)
            gpu_vertex_[static_cast<std::size_t>(graph[v].id)] = static_cast<std::int64_t>(v);
    // Calls `visit` for every edge of that relation, with its end of that kind and its other end.
    const auto for_edges = [&](HardwareRelation relation, HardwareKind kind, auto&& visit) {
        for (const auto e : boost::make_iterator_range(boost::edges(graph))) {
            if (graph[e].relation != relation) continue;
            const auto a = boost::source(e, graph), b = boost::target(e, graph);
            graph[a].kind == kind ? visit(a, b) : visit(b, a);
        }
    };
    // Sockets of core groups come first, then sockets of NUMA nodes, through their core groups or directly.
    for_edges(HardwareRelation::hosts, HardwareKind::socket,
              [&](Vertex socket, Vertex hosted) { socket_of[hosted] = graph[socket].id; });
    for_edges(HardwareRelation::localized, HardwareKind::numa_node, [&](Vertex numa, Vertex group) {
        const int socket = socket_of[group];
        if (socket < 0) return;
        if (socket_of[numa] >= 0 && socket_of[numa] != socket)
            throw InvalidInput("numa_node " + std::to_string(graph[numa].id) + ": lies in sockets " +
                               std::to_string(socket_of[numa]) + " and " + std::to_string(socket));
        socket_of[numa] = socket;
    });
    for_edges(HardwareRelation::nearby, HardwareKind::gpu, [&](Vertex gpu, Vertex numa) {
        numa_of[gpu] = graph[numa].id;
        socket_of[gpu] = socket_of[numa];
    });
    for (Vertex root = 0; root < count; ++root) {
        if (graph[root].kind != HardwareKind::pcie_root) continue;
        const auto hops = detail::hops_from(graph, root, detail::PcieEdges{&graph});
        for (Vertex v = 0; v < count; ++v)
            if (graph[v].kind == HardwareKind::gpu && hops[v] >= 0) root_of[v] = graph[root].id;
    }
    masks_ = {};
    const auto size_for = [&](HardwareKind kind, std::vector<GpuMask>& masks) {
        for (Vertex v = 0; v < count; ++v)
            if (graph[v].kind == kind && static_cast<std::size_t>(graph[v].id) >= masks.size())
                masks.resize(static_cast<std::size_t>(graph[v].id) + 1);
    };
    size_for(HardwareKind::numa_node, masks_.numa);
    size_for(HardwareKind::socket, masks_.socket);
    size_for(HardwareKind::pcie_root, masks_.pcie_root);
    for (Vertex v = 0; v < count; ++v) {
        if (graph[v].kind != HardwareKind::gpu) continue;
        const auto put = [&](std::vector<GpuMask>& masks, int where) {
            if (where >= 0) masks[static_cast<std::size_t>(where)] |= gpu_bit(graph[v].id);
        };
        put(masks_.numa, numa_of[v]);
        put(masks_.socket, socket_of[v]);
        put(masks_.pcie_root, root_of[v]);
    }
    refresh_state();

    row_ = 0;
    for (std::size_t g = 0; g < gpu_vertex_.size(); ++g)
        if (gpu_vertex_[g] >= 0) row_ = g + 1;
    distance_.assign(row_ * row_, -1);
    bandwidth_.assign(row_ * row_, 0);
    for (int g = 0; g < max_gpus_per_node; ++g) {
        if (gpu_vertex_[static_cast<std::size_t>(g)] < 0) continue;
        const auto from = static_cast<Vertex>(gpu_vertex_[static_cast<std::size_t>(g)]);
        const auto hops = detail::hops_from(graph, from, detail::TrafficEdges{&graph, from});
        const auto width = detail::widths_from(graph, from, detail::TrafficEdges{&graph, from});
        for (int h = 0; h < max_gpus_per_node; ++h) {
            const auto to = gpu_vertex_[static_cast<std::size_t>(h)];
            if (to < 0) continue;
            distance_[pair(g, h)] = hops[static_cast<Vertex>(to)];
            bandwidth_[pair(g, h)] = width[static_cast<Vertex>(to)];
        }
    }
}

GPUSCHED_EXPORT void HardwareGraph::refresh_state() {
    masks_.healthy = masks_.free = 0;
    for (int g = 0; g < max_gpus_per_node; ++g) {
        const auto v = gpu_vertex_[static_cast<std::size_t>(g)];
        if (v < 0) continue;
        const auto& gpu = (*graph_)[static_cast<Vertex>(v)];
        if (gpu.status == HardwareStatus::failed) continue;
        masks_.healthy |= gpu_bit(g);
        if (gpu.status == HardwareStatus::free) masks_.free |= gpu_bit(g);
    }
}

GPUSCHED_EXPORT GpuMask HardwareGraph::gpus() const noexcept {
    GpuMask all = 0;
    for (int g = 0; g < max_gpus_per_node; ++g)
        if (gpu_vertex_[static_cast<std::size_t>(g)] >= 0) all |= gpu_bit(g);
    return all;
}

// Questions -------------------------------------------------------------------------------------------------

GPUSCHED_EXPORT HardwareGraph::Vertex HardwareGraph::gpu_vertex(int gpu) const {
    if (gpu < 0 || gpu >= max_gpus_per_node || gpu_vertex_[static_cast<std::size_t>(gpu)] < 0)
        throw InvalidInput(bad_value("gpu", std::to_string(gpu), "a GPU of this machine"));
    return static_cast<Vertex>(gpu_vertex_[static_cast<std::size_t>(gpu)]);
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
    for (int g = 0; g < max_gpus_per_node; ++g) {
        if (gpu_vertex_[static_cast<std::size_t>(g)] < 0) continue;
        auto& v = (*graph_)[gpu_vertex(g)];
        if (v.used_by.empty() || v.used_by != user) continue;
        v.used_by.clear();
        if (v.status == HardwareStatus::allocated) v.status = HardwareStatus::free;
        released |= gpu_bit(g);
    }
    refresh_state();
    return released;
}

}  // namespace gpusched::topology
