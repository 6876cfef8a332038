#pragma once

#include <gpusched/allocation/place.hpp>
#include <gpusched/core/checks.hpp>

#include <string>

namespace GPUSCHED_NAMESPACE::allocation {

namespace detail {

GPUSCHED_INTERNAL void require_task(const Cluster& cluster, TaskId task) {
    if (!cluster.contains(task))
        throw InvalidInput(bad_value("task", "#" + number_text(index(task)),
                                     "one of the cluster's " + number_text(cluster.task_slots())));
}

}  // namespace detail

GPUSCHED_INLINE std::vector<NodeId> feasible_nodes(const Cluster& cluster, TaskId task) {
    detail::require_task(cluster, task);
    std::vector<NodeId> nodes;
    for (const auto node : cluster.nodes())
        if (find_obstacle(cluster, task, node) == Obstacle::none) nodes.push_back(node);
    return nodes;
}

}  // namespace GPUSCHED_NAMESPACE::allocation
