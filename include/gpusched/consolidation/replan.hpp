// Replan: consolidation that goes on from a plan of an earlier snapshot, after small changes.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/consolidation/any.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation {

/// Destinations of an earlier plan first: where that plan moved a task, then where `others` would.
struct PlannedFirst {
    std::vector<NodeId> planned;   ///< by TaskId; none = the plan does not move it
    AnyDestinationRanking others;  ///< for what does not fit there

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

/// Nodes that an earlier plan vacates first, in the order in which it does; then the order of `others`.
struct VacatedFirst {
    std::vector<std::int64_t>
        turn;  ///< by NodeId; 0 = the plan does not vacate it, below 0 = the earlier the lower
    AnyNodeOrder others;

    std::int64_t operator()(const Cluster& cluster, NodeId node) const {
        const auto planned = turn[gpusched::index(node)];
        return planned != 0 ? planned : others(cluster, node);
    }
};

/// Consolidates once more, from a plan that was made for an earlier snapshot of the same cluster: for a queue that changes while a plan waits
/// for approval, or is carried out in part.
///
/// One round of the preset's search, in which the nodes that the plan vacates come first, and tasks go first where the plan moved them. So the
/// new plan mostly repeats what is still right of the last one, and is found in a small part of the time that `best` takes; what tasks
/// and nodes do since then is left to the search, as in any plan. Names that are gone, and moves that were carried out, are ignored. The
/// plan is worth about as much as one made anew (docs/consolidation.md has figures), but `best` promises more: after many changes, plan anew.
///
/// @param last the earlier plan; where its moves say their chains (`Options::record_chains`), their order is followed
/// @param options as for `consolidate`, without a goal
/// @return, throws, determinism: as `consolidate(cluster, options, context)`
[[nodiscard]] Result replan(const Cluster& cluster, const PlanSpec& last, const Options& options = {},
                            const Context& context = {});

}  // namespace GPUSCHED_NAMESPACE::consolidation

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/consolidation/impl/replan.ipp>
#endif
