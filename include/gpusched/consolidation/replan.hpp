// SPDX-License-Identifier: Apache-2.0
// replan(): consolidation that continues from a plan of an earlier snapshot.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

namespace gpusched::consolidation {

/// Makes a new plan from the plan of an earlier snapshot of the same cluster: for example, while a plan waits
/// for approval or is half done.
///
/// It repeats the moves of the last plan that are still possible and still vacate nodes, then searches one
/// round for further nodes. If one round from scratch gives a better plan, that one is returned. So the plan
/// is worth at least as much as the rest of the last plan, and takes a small part of the time of `best`.
/// Changes since the last plan are read from `cluster`; unknown names and completed moves are ignored.
///
/// With at most 1,000 nodes the complete search of the preset runs as well: the plan is worth at least 99.5 %
/// of a new one. With more nodes that is not guaranteed (figures in docs/consolidation.md).
///
/// @param last the last plan; if its moves name their chains (`SearchOptions::record_chains`), their order is
///     kept
/// @param options as for `consolidate`, without a goal
/// @return, throws, determinism: as `consolidate(cluster, options, context)`
[[nodiscard]] Result replan(const Cluster& cluster, const PlanSpec& last, const Options& options = {},
                            const Context& context = {});

}  // namespace gpusched::consolidation
