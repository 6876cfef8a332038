// SPDX-License-Identifier: Apache-2.0
// Finds an order of placements in which each is possible.
#pragma once

#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace gpusched::detail {

/// Can a task pass this obstacle after more placements? Only near and spread can: they depend on tasks placed
/// later.
inline bool may_pass(Obstacle obstacle) { return obstacle == Obstacle::near || obstacle == Obstacle::spread; }

/// Returns whether a constraint of the task can need other tasks somewhere, so that it does not follow from fewer
/// tasks.
inline bool needs_others(const Inventory& inventory, TaskId task) {
    const auto groups = inventory.selection_memberships(task);
    return std::any_of(groups.begin(), groups.end(), [&](const Membership& m) {
        const auto kind = inventory.group_sets[m.set].kind;
        return kind == GroupKind::near || kind == GroupKind::spread;
    });
}

/// Calls `place(i)` for all placements until no call succeeds any more. `place` returns true if it placed the
/// task.
/// @return the placements that remain, in their order
template <class Place>
std::vector<std::size_t> place_in_some_order(std::size_t count, Place&& place) {
    std::vector<std::size_t> waiting(count);
    for (std::size_t i = 0; i < count; ++i) waiting[i] = i;
    for (auto before = count + 1; waiting.size() < before;) {
        before = waiting.size();
        std::erase_if(waiting, place);
    }
    return waiting;
}

/// Are the placements possible in some order? Leaves the cluster with as many of them as possible.
inline bool can_be_placed(Cluster& cluster, std::span<const Placement> placements) {
    return place_in_some_order(placements.size(),
                               [&](std::size_t i) {
                                   const auto& p = placements[i];
                                   if (find_obstacle(cluster, p.task, p.node) != Obstacle::none ||
                                       !gpus_fit(cluster, p.task, p.node, p.gpus))
                                       return false;
                                   cluster.assign(p.task, p.node, p.gpus);
                                   return true;
                               })
        .empty();
}

}  // namespace gpusched::detail
