// SPDX-License-Identifier: Apache-2.0
// Builds the graph of a machine from descriptions and readings, and converts it back.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/topology/boost_hardware.hpp>
#include <gpusched/topology/hardware_graph.hpp>

#include <boost/range/iterator_range.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace gpusched::topology {
namespace detail {

/// Copies the holder of a vertex from `known` to `reading`, which has no holders. A vertex can be allocated
/// without a named holder.
static void take_holder(const HardwareVertex& known, HardwareVertex& reading) {
    reading.used_by = known.used_by;
    if (reading.status == HardwareStatus::failed) return;
    reading.status = known.status != HardwareStatus::failed ? known.status
                     : known.used_by.empty()                ? HardwareStatus::free
                                                            : HardwareStatus::allocated;
}

/// Copies the holders of cores and core groups from `known` to `reading`, which has no holders. Cores are
/// matched by id. Core groups are matched by id if the group has the same cores in both graphs.
static void keep_core_holders(const BoostHardware& known, BoostHardware& reading) {
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
        for (const auto e : boost::make_iterator_range(boost::edges(graph))) {
            if (graph[e].relation != HardwareRelation::contains) continue;
            auto group = boost::source(e, graph), core = boost::target(e, graph);
            if (graph[group].kind == Kind::core) std::swap(group, core);
            units[{Kind::core_group, graph[group].id}].cores.insert(graph[core].id);
        }
        return units;
    };
    const auto before = units_of(known);
    for (const auto& [key, unit] : units_of(reading)) {
        const auto found = before.find(key);
        if (found == before.end() || found->second.cores != unit.cores) continue;
        const auto& old = known[found->second.vertex];
        auto& now = reading[unit.vertex];
        take_holder(old, now);
    }
}

}  // namespace detail

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

GPUSCHED_EXPORT Hardware HardwareGraph::hardware() const {
    const auto& graph = *graph_;
    Hardware out;
    out.numa_nodes.resize(masks_.numa.size());
    std::vector<int> socket(masks_.numa.size(), -1);
    std::vector<bool> exists(masks_.numa.size(), false);
    for (const auto v : vertices())
        if (graph[v].kind == HardwareKind::numa_node) exists[static_cast<std::size_t>(graph[v].id)] = true;
    GpuMask placed = 0;
    for (std::size_t n = 0; n < masks_.numa.size(); ++n) {
        out.numa_nodes[n].gpus = masks_.numa[n];
        placed |= masks_.numa[n];
    }
    std::map<Vertex, int> group_socket, group_numa, group_cores;
    for (const auto e : boost::make_iterator_range(boost::edges(graph))) {
        auto a = boost::source(e, graph), b = boost::target(e, graph);
        if (graph[a].kind == HardwareKind::core_group || graph[a].kind == HardwareKind::core) std::swap(a, b);
        if (graph[a].kind == HardwareKind::core) std::swap(a, b);
        switch (graph[e].relation) {
        case HardwareRelation::hosts:
            if (graph[b].kind == HardwareKind::numa_node) std::swap(a, b);
            if (graph[a].kind == HardwareKind::numa_node)
                socket[static_cast<std::size_t>(graph[a].id)] = graph[b].id;
            else
                group_socket[b] = graph[a].id;
            break;
        case HardwareRelation::localized:
            group_numa[b] = graph[a].id;
            break;
        case HardwareRelation::contains:
            ++group_cores[graph[a].kind == HardwareKind::core_group ? a : b];
            break;
        default:
            break;
        }
    }
    for (const auto& [group, numa] : group_numa) {
        out.numa_nodes[static_cast<std::size_t>(numa)].cores += group_cores[group];
        if (const auto found = group_socket.find(group); found != group_socket.end())
            socket[static_cast<std::size_t>(numa)] = found->second;
    }
    Problems problems;
    for (std::size_t n = 0; n < socket.size(); ++n) {
        if (socket[n] < 0 && (out.numa_nodes[n].gpus != 0 || out.numa_nodes[n].cores != 0))
            problems.add("numa_node " + std::to_string(n) + ": is in no socket");
        out.numa_nodes[n].socket = std::max(socket[n], 0);
    }
    for (int g = 0; g < max_gpus_per_node; ++g)
        if (gpu_vertex_[static_cast<std::size_t>(g)] >= 0 && (placed & gpu_bit(g)) == 0)
            problems.add("gpu " + std::to_string(g) + ": is near no NUMA node");
    problems.throw_if_any();
    std::vector<NumaNode> there;  // ids may have gaps
    for (std::size_t n = 0; n < exists.size(); ++n)
        if (exists[n]) there.push_back(out.numa_nodes[n]);
    out.numa_nodes = std::move(there);
    return out;
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
    HardwareGraph merged(observed);
    for (int g = 0; g < max_gpus_per_node; ++g) {
        const auto i = static_cast<std::size_t>(g);
        const bool known = gpu_vertex_[i] >= 0, seen = observed.gpu_vertex_[i] >= 0;
        if (!known && !seen) continue;
        if (!known) {
            changes.push_back({Kind::gpu_added, g});
            continue;
        }
        const auto& old = (*graph_)[static_cast<Vertex>(gpu_vertex_[i])];
        if (!seen) {
            if (old.status != HardwareStatus::failed) changes.push_back({Kind::gpu_failed, g});
            continue;
        }
        auto& now = (*merged.graph_)[static_cast<Vertex>(merged.gpu_vertex_[i])];
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
    }
    detail::keep_core_holders(*graph_, *merged.graph_);
    std::vector<HardwareVertex> vertices;
    std::vector<Link> links;
    for (const auto v : merged.vertices()) vertices.push_back(merged.vertex(v));
    for (const auto e : merged.edges()) links.push_back({merged.source(e), merged.target(e), merged.edge(e)});
    for (int g = 0; g < max_gpus_per_node; ++g) {
        const auto i = static_cast<std::size_t>(g);
        if (gpu_vertex_[i] < 0 || observed.gpu_vertex_[i] >= 0) continue;
        auto gone = (*graph_)[static_cast<Vertex>(gpu_vertex_[i])];
        gone.status = HardwareStatus::failed;
        vertices.push_back(gone);
        // The GPU keeps its place if the place still exists.
        const auto self = static_cast<Vertex>(gpu_vertex_[i]);
        for (const auto e : boost::make_iterator_range(boost::out_edges(self, *graph_))) {
            const auto& other = (*graph_)[boost::target(e, *graph_)];
            for (Vertex v = 0; v + 1 < vertices.size(); ++v)
                if (vertices[v].kind == other.kind && vertices[v].id == other.id)
                    links.push_back({vertices.size() - 1, v, (*graph_)[e]});
        }
    }
    *this = HardwareGraph(std::move(vertices), std::move(links));
    std::sort(changes.begin(), changes.end(), [](const HardwareChange& a, const HardwareChange& b) {
        return std::pair(a.kind, a.gpu) < std::pair(b.kind, b.gpu);
    });
    return changes;
}

}  // namespace gpusched::topology
