// SPDX-License-Identifier: Apache-2.0
// Rack-scale NVLink domains as domains of the network.
#pragma once

#include <gpusched/model/spec.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::topology {

/// Racks whose GPUs are one NVLink domain: the nodes of a rack share a domain of the network below all others.
struct RackPreset {
    /// Of the preset.
    std::string name{};
    /// How many nodes a rack has.
    int nodes_per_rack = 0;
    /// How many GPUs each node has.
    int gpus_per_node = 0;
    double nvlink_gb_s = 0;  ///< of each GPU, in one direction
    bool operator==(const RackPreset&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<RackPreset>, F&& field) {
    field("name", &RackPreset::name);
    field("nodes_per_rack", &RackPreset::nodes_per_rack);
    field("gpus_per_node", &RackPreset::gpus_per_node);
    field("nvlink_gb_s", &RackPreset::nvlink_gb_s);
}

/// The preset of that name, or nothing. `gb200-nvl72`: 18 nodes (compute trays) of 4 GPUs, 900 GB/s (NVLink 5).
[[nodiscard]] std::optional<RackPreset> rack_preset(std::string_view name);
/// The names of the presets.
[[nodiscard]] std::vector<std::string_view> rack_preset_names();

/// Nodes of whole racks as specifications: `<prefix>r0-n0` and so on, each with its rack `<prefix>r0` below `above`.
///
/// Cores and memory are left at zero, for the caller to fill in.
/// @param racks how many, >= 1
/// @param above domains from the root down to what the racks hang from
/// @throws InvalidInput for a preset without nodes or GPUs, or fewer than one rack
[[nodiscard]] std::vector<NodeSpec> rack_nodes(const RackPreset& preset, int racks,
                                               const std::string& prefix = {},
                                               const std::vector<std::string>& above = {});

/// Makes NVLink domains of nodes that are there: every `nodes_per_rack` of those given, in order, get one more domain
/// `<prefix>r0` and so on at the end of their path.
/// @param nodes positions in `cluster.nodes`, those of a rack next to each other
/// @return how many racks there are
/// @throws InvalidInput when the number of nodes is no multiple of the preset's, a position is out of range or given
///         twice, a node has another number of GPUs, or the nodes of one rack hang from different domains; `cluster`
///         is unchanged then
std::size_t add_racks(ClusterSpec& cluster, const RackPreset& preset, const std::vector<std::size_t>& nodes,
                      const std::string& prefix = {});

}  // namespace gpusched::topology
