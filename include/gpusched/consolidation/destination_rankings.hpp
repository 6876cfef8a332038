// SPDX-License-Identifier: Apache-2.0
// Destination rankings: where a task goes among the nodes of its group.
#pragma once

#include <gpusched/consolidation/concepts.hpp>

namespace gpusched::consolidation {

/// In the order of the group, as the paper's pseudocode leaves it.
struct GroupOrder {
    template <class Offer>
    bool visit(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        for (const auto node : index.receivers_for(cluster, task))
            if (index.is_open(node) && offer(node)) return true;
        return false;
    }
    template <class Offer>
    bool visit_full(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        return visit(cluster, index, task, offer);
    }
};

/// Tightest fit: fewest idle GPUs first, then fewest free cores. A fraction goes to the partly used GPU with the least left
/// before it breaks into an idle one.
struct TightestFit {
    template <class Offer>
    bool visit(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        const auto& t = cluster.inventory().tasks;
        const auto i = gpusched::index(task);
        if (cluster.is_fraction(task) && t.gpu_count[i] > 0 &&
            index.visit_partial(t.gpu_share_milli[i], offer))
            return true;
        return index.visit_whole(t.gpu_count[i], t.cpu_milli[i], offer);
    }
    /// Nodes that lack the fewest GPUs first.
    template <class Offer>
    bool visit_full(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        const int wanted = cluster.inventory().tasks.gpu_count[gpusched::index(task)];
        for (int idle = wanted; idle >= 0; --idle)
            if (index.visit_bucket(idle, 0, offer)) return true;
        return index.visit_whole(wanted + 1, 0, offer);
    }
};

}  // namespace gpusched::consolidation
