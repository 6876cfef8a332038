// SPDX-License-Identifier: Apache-2.0
// Replan: consolidation that goes on from a plan of an earlier snapshot, after small changes.
#pragma once

#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <vector>

namespace gpusched::consolidation {

/// Ranks the destination of the last plan first, then the destinations of `others`.
struct PlannedFirst {
    std::vector<NodeId> planned;   ///< by TaskId; none = the last plan does not move the task
    AnyDestinationRanking others;  ///< for tasks that do not fit there

    template <class Offer>
    bool visit(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        return offer_planned(index, task, offer) || others.visit(cluster, index, task, offer);
    }
    template <class Offer>
    bool visit_full(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        return offer_planned(index, task, offer) || others.visit_full(cluster, index, task, offer);
    }

  private:
    template <class Offer>
    bool offer_planned(const FreeIndex& index, TaskId task, Offer&& offer) const {
        const auto node = planned[gpusched::index(task)];
        return node != none<NodeId> && index.is_open(node) && offer(node);
    }
};

/// Orders the nodes that the last plan vacates first, as that plan does; then the other nodes by `others`.
struct VacatedFirst {
    std::vector<std::int64_t>
        turn;  ///< by NodeId; 0 = the plan does not vacate it, below 0 = the earlier the lower
    AnyNodeOrder others;

    std::int64_t operator()(const Cluster& cluster, NodeId node) const {
        const auto planned = turn[gpusched::index(node)];
        return planned != 0 ? planned : others(cluster, node);
    }
};

/// Makes a new plan from the plan of an earlier snapshot of the same cluster, for example while a plan waits for approval or is half done.
///
/// It makes the moves of the last plan that are still possible and still vacate nodes, then one round of the preset's search for further
/// nodes; where one round from nothing gives a better plan, that one is returned. So no plan is worth less than what is left of the last one,
/// and it is found in a small part of the time that `best` takes. Changes since the last plan need no description: the search reads them from
/// `cluster`. Names that are gone, and moves that are already done, are ignored. On 1,000 nodes or fewer the whole search of the preset is
/// made as well: the plan is worth at least 99.5 % of a new one. On more nodes that is not guaranteed (docs/consolidation.md has figures).
///
/// @param last the last plan; where its moves name their chains (`Options::record_chains`), their order is kept
/// @param options as for `consolidate`, without a goal
/// @return, throws, determinism: as `consolidate(cluster, options, context)`
[[nodiscard]] Result replan(const Cluster& cluster, const PlanSpec& last, const Options& options = {},
                            const Context& context = {});

}  // namespace gpusched::consolidation
