// SPDX-License-Identifier: Apache-2.0
// Machines with their allocation state as FlexTopo objects.
#pragma once

#include <gpusched/topology/hardware_graph.hpp>

#include <string>
#include <string_view>

namespace gpusched::io {

/// A machine as a FlexTopo custom resource (JSON, which YAML readers read too): its sockets, NUMA nodes, core groups, cores and
/// GPUs, and who uses them.
///
/// Vertices are written as the collector of the FlexTopo authors writes them (`socket-0`, `numa-0`, `coregroup-0`, `core-0`, `gpu-0`;
/// attributes status, usedBy, uuid, name, memoryTotal), edges as Table 2 of the paper has them: host (also of a NUMA node without core
/// groups), contain, localized, nearby. PCIe, NVLink, links of sockets and bandwidths have no place in the object. `flextopo_from_text`
/// reads the rest back, except that it spreads GPUs over the NUMA nodes where none is near one. Vertices and edges come in the
/// graph's order, so equal graphs give equal text.
/// @param name  of the object, which is cluster-wide: the node's
/// @throws InvalidInput for a name that Kubernetes would not accept
[[nodiscard]] std::string flextopo_to_json(const topology::HardwareGraph& graph, std::string_view name);

}  // namespace gpusched::io
