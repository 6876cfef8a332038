// SPDX-License-Identifier: Apache-2.0
// hardware_to_dot(): draws a machine as a DOT file for Graphviz.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/topology/hardware_graph.hpp>

#include <string>
#include <type_traits>

namespace gpusched::topology {

/// Options of hardware_to_dot().
struct HardwareDotOptions {
    bool cores = false;  ///< draw every core; if false, a core group shows the number of its cores
};
template <class F>
constexpr void visit_fields(std::type_identity<HardwareDotOptions>, F&& field) {
    field("cores", &HardwareDotOptions::cores);
}

/// Returns the machine in the DOT language. Sockets are clusters around their core groups and NUMA nodes.
/// PCIe roots, switches and GPUs are vertices; GPUs show their model and state. Links show their GB/s if
/// known.
///
/// Vertices and edges are in the graph's order, so equal graphs give equal text. A failed GPU is filled red,
/// an allocated GPU grey.
///
/// O(vertices x edges).
[[nodiscard]] std::string hardware_to_dot(const HardwareGraph& graph, const HardwareDotOptions& options = {});

}  // namespace gpusched::topology
