// SPDX-License-Identifier: Apache-2.0
// Racks: rack-scale NVLink domains as domains of the network.
#pragma once

#include <gpusched/model/spec.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::topology {

/// A type of rack with all GPUs in one NVLink domain. The nodes of a rack share a domain of the network below
/// all others.
struct RackPreset {
    /// The name of the preset.
    std::string name{};
    /// The number of nodes in a rack.
    int nodes_per_rack = 0;
    /// The number of GPUs in a node.
    int gpus_per_node = 0;
    double nvlink_gb_s = 0;  ///< bandwidth of each GPU, in one direction
    bool operator==(const RackPreset&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<RackPreset>, F&& field) {
    field("name", &RackPreset::name);
    field("nodes_per_rack", &RackPreset::nodes_per_rack);
    field("gpus_per_node", &RackPreset::gpus_per_node);
    field("nvlink_gb_s", &RackPreset::nvlink_gb_s);
}

/// Returns the preset with that name, or nothing. `gb200-nvl72`: 18 nodes (compute trays) of 4 GPUs, 900 GB/s
/// (NVLink 5).
[[nodiscard]] std::optional<RackPreset> rack_preset(std::string_view name);
/// Returns the names of the presets.
[[nodiscard]] std::vector<std::string_view> rack_preset_names();

/// Returns the specifications of the nodes of whole racks: `<prefix>r0-n0` and so on, each in its rack
/// `<prefix>r0` below `above`.
///
/// Cores and memory are zero, for the caller to fill in.
/// @param racks the number of racks, >= 1
/// @param above domains from the root down to the parent of the racks
/// @throws InvalidInput if the preset has no nodes or no GPUs, or `racks` is below 1
[[nodiscard]] std::vector<NodeSpec> rack_nodes(const RackPreset& preset, int racks,
                                               const std::string& prefix = {},
                                               const std::vector<std::string>& above = {});

/// Groups existing nodes into NVLink domains: each group of `nodes_per_rack` given nodes, in order, gets one
/// more domain `<prefix>r0` and so on at the end of its path.
/// @param nodes positions in `cluster.nodes`; the nodes of a rack are consecutive
/// @return the number of racks
/// @throws InvalidInput if the number of nodes is not a multiple of the preset's, a position is out of range
///     or listed twice, a node has another number of GPUs, or the nodes of one rack have different parent
///     domains; `cluster` is unchanged in this case
std::size_t add_racks(ClusterSpec& cluster, const RackPreset& preset, const std::vector<std::size_t>& nodes,
                      const std::string& prefix = {});

}  // namespace gpusched::topology
