// SPDX-License-Identifier: Apache-2.0
// Rack presets and the functions that build racks from them.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/topology/racks.hpp>

#include <utility>
#include <vector>

namespace gpusched::topology {

namespace detail {

static void check_preset(const RackPreset& preset, Problems& problems) {
    check_at_least(problems, "nodes_per_rack", preset.nodes_per_rack, 1);
    check_range(problems, "gpus_per_node", preset.gpus_per_node, 1, max_gpus_per_node);
}

static std::string rack_name(const std::string& prefix, std::size_t rack) {
    return prefix + "r" + std::to_string(rack);
}

}  // namespace detail

GPUSCHED_EXPORT std::optional<RackPreset> rack_preset(std::string_view name) {
    if (name == "gb200-nvl72") return RackPreset{"gb200-nvl72", 18, 4, 900};
    return std::nullopt;
}

GPUSCHED_EXPORT std::vector<std::string_view> rack_preset_names() { return {"gb200-nvl72"}; }

GPUSCHED_EXPORT std::vector<NodeSpec> rack_nodes(const RackPreset& preset, int racks,
                                                 const std::string& prefix,
                                                 const std::vector<std::string>& above) {
    Problems problems;
    detail::check_preset(preset, problems);
    check_at_least(problems, "racks", racks, 1);
    problems.throw_if_any();
    std::vector<NodeSpec> out;
    for (int r = 0; r < racks; ++r) {
        const auto rack = detail::rack_name(prefix, static_cast<std::size_t>(r));
        for (int n = 0; n < preset.nodes_per_rack; ++n) {
            NodeSpec node;
            node.name = rack + "-n" + std::to_string(n);
            node.gpu_count = preset.gpus_per_node;
            node.network = above;
            node.network.push_back(rack);
            out.push_back(std::move(node));
        }
    }
    return out;
}

GPUSCHED_EXPORT std::size_t add_racks(ClusterSpec& cluster, const RackPreset& preset,
                                      const std::vector<std::size_t>& nodes, const std::string& prefix) {
    Problems problems;
    detail::check_preset(preset, problems);
    problems.throw_if_any();
    const auto width = static_cast<std::size_t>(preset.nodes_per_rack);
    if (nodes.size() % width != 0)
        problems.add(
            bad_value("nodes", std::to_string(nodes.size()), "a multiple of " + std::to_string(width)));
    std::vector<bool> seen(cluster.nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i] >= cluster.nodes.size()) {
            problems.add(bad_value("nodes", std::to_string(nodes[i]),
                                   "less than " + std::to_string(cluster.nodes.size())));
            continue;
        }
        const auto& node = cluster.nodes[nodes[i]];
        const auto owner = "node " + gpusched::quoted(node.name);
        if (seen[nodes[i]]) problems.add(owner + ": is given twice");
        seen[nodes[i]] = true;
        check_range(problems, "gpu_count", node.gpu_count, preset.gpus_per_node, preset.gpus_per_node, owner);
        const auto first = nodes[i / width * width];
        if (first < cluster.nodes.size() && cluster.nodes[first].network != node.network)
            problems.add(owner + ": network differs from that of " +
                         gpusched::quoted(cluster.nodes[first].name) + ", the first of its rack");
    }
    problems.throw_if_any();
    for (std::size_t i = 0; i < nodes.size(); ++i)
        cluster.nodes[nodes[i]].network.push_back(detail::rack_name(prefix, i / width));
    return nodes.size() / width;
}

}  // namespace gpusched::topology
