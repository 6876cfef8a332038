// SPDX-License-Identifier: Apache-2.0
// Which nodes a decision leaves to daemons alone.
#pragma once

#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace gpusched::preemption::detail {

/// Nodes that hold tasks other than daemons now, all of them victims, and where none is placed.
/// @param is_taken whether a task other than a daemon is placed on the node
template <class Taken>
void list_vacated_nodes(const Cluster& cluster, std::span<const TaskId> victims, const Taken& is_taken,
                        std::vector<NodeId>& vacated) {
    vacated.clear();
    for (const auto victim : victims) {
        const auto node = cluster.node_of(victim);
        if (!is_taken(node)) vacated.push_back(node);
    }
    if (vacated.empty()) return;
    // Victims are never daemons: a node is vacated when it is here as often as it holds others than daemons.
    std::sort(vacated.begin(), vacated.end());
    auto kept = vacated.begin();
    for (auto first = vacated.begin(), last = first; first != vacated.end(); first = last) {
        const auto node = *first;
        last = std::find_if(first, vacated.end(), [&](NodeId other) { return other != node; });
        if (last - first == cluster.occupants(node)) *kept++ = node;
    }
    vacated.erase(kept, vacated.end());
}

}  // namespace gpusched::preemption::detail
