// SPDX-License-Identifier: Apache-2.0
// feasible_nodes() and find_obstacles().
#include <gpusched/allocation/place.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>

#include <string>

namespace gpusched::allocation {

namespace detail {

void require_task(const Cluster& cluster, TaskId task) {
    if (!cluster.contains(task))
        throw InvalidInput(bad_value("task", "#" + number_text(index(task)),
                                     "one of the cluster's " + number_text(cluster.task_slots())));
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<NodeId> feasible_nodes(const Cluster& cluster, TaskId task) {
    detail::require_task(cluster, task);
    std::vector<NodeId> nodes;
    for (const auto node : cluster.nodes())
        if (find_obstacle(cluster, task, node) == Obstacle::none) nodes.push_back(node);
    return nodes;
}

GPUSCHED_EXPORT std::vector<Obstacle> find_obstacles(const Cluster& cluster, TaskId task, OldCopy old_copy) {
    detail::require_task(cluster, task);
    std::vector<Obstacle> out;
    const auto ask = [&](const Cluster& now) {
        for (const auto node : now.nodes()) {
            auto found = find_obstacle(now, task, node);
            if (found == Obstacle::not_eligible) found = find_eligibility_obstacle(now, task, node);
            out.push_back(found);
        }
    };
    if (old_copy == OldCopy::stays || !cluster.is_placed(task)) {
        ask(cluster);
    } else {
        auto without = cluster;
        without.remove(task);
        ask(without);
    }
    return out;
}

}  // namespace gpusched::allocation
