// SPDX-License-Identifier: Apache-2.0
#include "io/kubernetes_names.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/io/flextopo_json.hpp>
#include <gpusched/json/writer.hpp>

#include <cstddef>
#include <utility>

namespace gpusched::io {

namespace detail {

/// How the collector names a kind of vertex: its type, and what its ids begin with. Empty: the object has no such vertices.
constexpr std::pair<std::string_view, std::string_view> flextopo_names(topology::HardwareKind kind) {
    using K = topology::HardwareKind;
    switch (kind) {
    case K::socket:
        return {"Socket", "socket-"};
    case K::numa_node:
        return {"NUMANode", "numa-"};
    case K::core_group:
        return {"CoreGroup", "coregroup-"};
    case K::core:
        return {"CPUCore", "core-"};
    case K::gpu:
        return {"GPU", "gpu-"};
    case K::pcie_root:
    case K::pcie_switch:
        return {};
    }
    return {};
}

/// What Table 2 calls a relation, and the kind of vertex that its edges lead to. Empty: the object has no such edges.
constexpr std::pair<std::string_view, topology::HardwareKind>
flextopo_edge(topology::HardwareRelation relation) {
    using K = topology::HardwareKind;
    using R = topology::HardwareRelation;
    switch (relation) {
    case R::hosts:
        return {"host", K::core_group};
    case R::contains:
        return {"contain", K::core};
    case R::localized:
        return {"localized", K::numa_node};
    case R::nearby:
        return {"nearby", K::numa_node};
    case R::pcie:
    case R::nvlink:
    case R::interconnect:
        return {};
    }
    return {};
}

static std::string json_quoted(std::string_view text) {
    std::string out;
    json::Writer(out).write(text);
    return out;
}

static std::string flextopo_vertex(const topology::HardwareVertex& vertex) {
    using K = topology::HardwareKind;
    using S = topology::HardwareStatus;
    const auto [type, prefix] = flextopo_names(vertex.kind);
    std::string attributes;
    const auto add = [&](std::string_view key, const std::string& value) {
        attributes += (attributes.empty() ? "\"" : ", \"") + std::string(key) + "\": " + value;
    };
    if (vertex.kind == K::gpu && vertex.memory_mib > 0) add("memoryTotal", std::to_string(vertex.memory_mib));
    if (vertex.kind == K::gpu && !vertex.model.empty()) add("name", json_quoted(vertex.model));
    if (vertex.kind == K::gpu || vertex.kind == K::core || vertex.kind == K::core_group)
        add("status", vertex.status == S::failed      ? "\"failed\""
                      : vertex.status == S::allocated ? "\"used\""
                                                      : "\"free\"");
    if (!vertex.used_by.empty()) add("usedBy", json_quoted(vertex.used_by));
    if (vertex.kind == K::gpu && !vertex.uuid.empty()) add("uuid", json_quoted(vertex.uuid));
    return "{\"id\": \"" + std::string(prefix) + std::to_string(vertex.id) + "\", \"type\": \"" +
           std::string(type) + "\", \"attributes\": {" + attributes + "}}";
}

static std::string flextopo_id(const topology::HardwareVertex& vertex) {
    return std::string(flextopo_names(vertex.kind).second) + std::to_string(vertex.id);
}

}  // namespace detail

GPUSCHED_EXPORT std::string flextopo_to_json(const topology::HardwareGraph& graph, std::string_view name) {
    if (!detail::is_kubernetes_name(name))
        throw InvalidInput("name: " + gpusched::quoted(printable(name)) +
                           "; expected a name as Kubernetes accepts it");
    std::string nodes, edges;
    const auto add = [](std::string& list, const std::string& entry) {
        list += (list.empty() ? "\n  " : ",\n  ") + entry;
    };
    for (const auto v : graph.vertices())
        if (!detail::flextopo_names(graph.vertex(v).kind).first.empty())
            add(nodes, detail::flextopo_vertex(graph.vertex(v)));
    for (const auto e : graph.edges()) {
        const auto [type, to] = detail::flextopo_edge(graph.edge(e).relation);
        if (type.empty()) continue;
        const auto *a = &graph.vertex(graph.source(e)), *b = &graph.vertex(graph.target(e));
        // Sockets may host NUMA nodes, too: there the socket is the source.
        if (a->kind == to || b->kind == topology::HardwareKind::socket) std::swap(a, b);
        add(edges, "{\"source\": \"" + detail::flextopo_id(*a) + "\", \"target\": \"" +
                       detail::flextopo_id(*b) + "\", \"type\": \"" + std::string(type) + "\"}");
    }
    return "{\"apiVersion\": \"flextopo.baichuan-inc.com/v1alpha1\", \"kind\": \"FlexTopo\", \"metadata\": "
           "{\"name\": " +
           detail::json_quoted(name) + "},\n \"spec\": {\"nodes\": [" + nodes + "],\n \"edges\": [" + edges +
           "]}}\n";
}

}  // namespace gpusched::io
