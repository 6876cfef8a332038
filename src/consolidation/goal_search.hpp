// SPDX-License-Identifier: Apache-2.0
// Goal search: so many empty nodes, or slots for tasks of a shape, for the least that moves may cost.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/model/cluster.hpp>

namespace gpusched::consolidation::detail {

/// The plan that comes closest to `options.goal`, which must be there and valid: `consolidate` with a goal.
///
/// One search goes down a ladder of prices, as `frontier` does, with what each node would add as its weight, and ends at
/// the first plan that reaches the goal. So nodes that cost the fewest moves for what they add come first. That is not the proven
/// least. Slots that arriving tasks take on other nodes are counted from the plan itself; where they are missing, the search goes on.
/// Slots are also made on nodes that stay in use: the fewest tasks leave a node for others where they take fewer slots, in ejection
/// chains of the options' depth (slot_maker.hpp), on top of that plan where it does not reach the goal, and without it. What reaches the
/// goal for less is returned.
///
/// @return the plan; empty where the goal is reached without one; else, where the goal is out of reach, the one that makes most.
///     Its weight is what its vacated nodes add to what there is, as far as nothing moves onto other slots
[[nodiscard]] Result search_goal(const Cluster& cluster, const Options& options, const Context& context);

}  // namespace gpusched::consolidation::detail
