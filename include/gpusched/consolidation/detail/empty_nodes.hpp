// SPDX-License-Identifier: Apache-2.0
// EmptyNodes: the empty nodes that a search may open, grouped by kind.
#pragma once

#include <gpusched/consolidation/detail/workspace.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::consolidation::detail {

/// The properties that decide which tasks an empty node may take and what opening it costs, except its position in the network, its name
/// and its neighbours. The weight comes first, so that kinds of little weight are tried first.
using EmptyKind = std::tuple<std::int64_t, std::uint32_t, std::uint32_t, std::uint32_t, GpuMask, GpuMask,
                             std::int64_t, std::int64_t, std::int64_t, std::vector<std::int64_t>>;

[[nodiscard]] inline EmptyKind empty_kind(const Cluster& cluster, NodeId node, std::int64_t weight) {
    const auto& inv = cluster.inventory();
    const auto n = index(node);
    std::vector<std::int64_t> resources;
    for (std::uint32_t r = 0; r < inv.resource_names.size(); ++r)
        resources.push_back(cluster.resource_free(node, r));
    return {weight,
            inv.nodes.node_class[n],
            inv.nodes.hardware[n],
            inv.nodes.devices[n],
            cluster.idle_gpus(node),
            cluster.free_devices(node),
            inv.nodes.gpu_memory_mib[n],
            cluster.cpu_free_milli(node),
            cluster.memory_free_mib(node),
            std::move(resources)};
}

/// Whether the kind of an empty node alone decides that the task may go there: the task has no group constraint and no list of nodes.
[[nodiscard]] inline bool place_is_free(const Cluster& cluster, TaskId task) {
    const auto& inv = cluster.inventory();
    return inv.memberships(task).empty() &&
           inv.extras[inv.tasks.extras[index(task)]].node_set == Extras::no_node_set;
}

/// The nodes of a group that may be opened.
struct EmptyNodes {
    std::vector<std::vector<NodeId>> kinds{};  ///< by ascending weight; nodes of one kind ascending
    std::vector<NodeId> all{};                 ///< kind by kind

    EmptyNodes() = default;
    /// @param weight the policy's weight of a node
    template <class Weight>
    EmptyNodes(const Workspace& work, std::span<const NodeId> group, const Weight& weight) {
        std::map<EmptyKind, std::vector<NodeId>> found;
        for (const auto node : group)
            if (work.scope.opens(node))
                found[empty_kind(work.snapshot, node, static_cast<std::int64_t>(weight(work.snapshot, node)))]
                    .push_back(node);
        for (auto& [kind, nodes] : found) {
            std::sort(nodes.begin(), nodes.end());
            all.insert(all.end(), nodes.begin(), nodes.end());
            kinds.push_back(std::move(nodes));
        }
    }
    [[nodiscard]] bool empty() const noexcept { return all.empty(); }
};

}  // namespace gpusched::consolidation::detail
