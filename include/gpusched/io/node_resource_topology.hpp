// SPDX-License-Identifier: Apache-2.0
// Reads NodeResourceTopology objects of Kubernetes: the resources of each NUMA node, and how much is
// available.
#pragma once

#include <gpusched/io/hardware_files.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::io {

/// How much of a resource there is, in thousandths of its unit (CPU: cores; memory: bytes; GPUs: pieces).
struct ResourceAmount {
    std::int64_t capacity_milli = 0;     ///< the whole amount
    std::int64_t allocatable_milli = 0;  ///< for pods
    std::int64_t available_milli = 0;    ///< of that, not in use
    bool operator==(const ResourceAmount&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ResourceAmount>, F&& field) {
    field("capacity_milli", &ResourceAmount::capacity_milli);
    field("allocatable_milli", &ResourceAmount::allocatable_milli);
    field("available_milli", &ResourceAmount::available_milli);
}

/// A NUMA node of a Kubernetes node.
struct NumaResources {
    std::string zone{};                                 ///< its name in the object
    int id = 0;                                         ///< the number at the name's end
    std::optional<int> socket{};                        ///< of the zone above it, if any
    std::map<std::string, ResourceAmount> resources{};  ///< by name, such as `nvidia.com/gpu`
    std::map<std::string, std::int64_t> costs{};        ///< distance to other zones
    bool operator==(const NumaResources&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<NumaResources>, F&& field) {
    field("zone", &NumaResources::zone);
    field("id", &NumaResources::id);
    field("socket", &NumaResources::socket);
    field("resources", &NumaResources::resources);
    field("costs", &NumaResources::costs);
}

/// One NodeResourceTopology object.
struct NodeResources {
    /// Its name.
    std::string node{};
    std::vector<NumaResources> numa_nodes{};  ///< by ascending id
    bool operator==(const NodeResources&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<NodeResources>, F&& field) {
    field("node", &NodeResources::node);
    field("numa_nodes", &NodeResources::numa_nodes);
}

/// Reads NodeResourceTopology objects (topology.node.k8s.io, v1alpha1 and v1alpha2). The text, YAML or JSON,
/// may hold other objects, too.
///
/// Zones of type Node, NUMANode or NUMA are NUMA nodes; zones of type Package or Socket above them are
/// sockets. Zones of other types are left out.
/// @throws BackendError if the file cannot be read, and for YAML if the library was built without libyaml
/// @throws InvalidInput with every problem, each with source and JSON pointer: no such object, zones without
///         name or number, names that occur twice, malformed quantities
[[nodiscard]] std::vector<NodeResources> read_node_resource_topology(const std::string& path);

/// The same from text.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  name of the text in messages
[[nodiscard]] std::vector<NodeResources> node_resource_topology_from_text(std::string_view text,
                                                                          std::string_view source = "<text>");

/// The machine that the NUMA nodes of an object make up. GPUs are `nvidia.com/gpu` and `amd.com/gpu`.
///
/// The object counts cores and GPUs but does not name them: they are numbered along the NUMA nodes, by
/// ascending id, and `notes` says so. It does not say which of them are in use, either.
/// @param options core groups, threads per core (0 = 1), sockets if there is no zone above, bandwidths
/// @throws InvalidInput for more than 64 GPUs, more than 65,536 cores, and options out of range
[[nodiscard]] HardwareReading machine_of(const NodeResources& node, const HardwareReadOptions& options = {});

}  // namespace gpusched::io
