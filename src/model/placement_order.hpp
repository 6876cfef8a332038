// SPDX-License-Identifier: Apache-2.0
// Placements one after the other, in an order in which each is possible.
#pragma once

#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace gpusched::detail {

/// May the task be placed later where `obstacle` is in the way now? Others may come that it wants near, or that fill the domains
/// to which it spreads. Nothing else gets better by placing more.
inline bool may_pass(Obstacle obstacle) { return obstacle == Obstacle::near || obstacle == Obstacle::spread; }

/// Calls `place(placement)` for the placements, again and again for those that wait: it answers whether it has placed it.
/// @return those that wait in the end, in their order
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

/// Are the placements possible in some order? Only of tasks that want others near, or spread, is that a question once each was
/// possible beside those that were placed before it. Leaves the pods placed as far as they go.
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
