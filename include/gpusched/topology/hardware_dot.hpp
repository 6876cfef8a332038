// SPDX-License-Identifier: Apache-2.0
// A machine as a DOT file for Graphviz.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/topology/hardware_graph.hpp>

#include <string>
#include <type_traits>

namespace gpusched::topology {

struct HardwareDotOptions {
    bool cores = false;  ///< draw every core; without them a core group shows how many it has
};
template <class F>
constexpr void visit_fields(std::type_identity<HardwareDotOptions>, F&& field) {
    field("cores", &HardwareDotOptions::cores);
}

/// The machine in the DOT language: sockets as clusters around their core groups and NUMA nodes, PCIe roots, switches
/// and GPUs with their model and state, links with their GB/s where these are known.
///
/// Vertices and edges come in the graph's order, so equal graphs give equal text. A failed GPU is filled red, one that
/// is held grey.
/// Complexity: O(vertices x edges).
[[nodiscard]] std::string hardware_to_dot(const HardwareGraph& graph, const HardwareDotOptions& options = {});

}  // namespace gpusched::topology
