// SPDX-License-Identifier: Apache-2.0
// Apply: the snapshot that a plan leads to.
#pragma once

#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

namespace gpusched {

/// The snapshot after the plan: evictions first, then wave by wave, then placements.
///
/// Follows the plan as an executor would: every step must be possible when its turn comes, and all moves of a wave
/// take their destinations while every source of that wave is still held, but for those of tasks that restart. What a plan must observe beyond that
/// (empty nodes, disruption limits, budgets, the list of vacated nodes) is for `verify::plan` to judge, which also reports
/// all violations instead of the first.
///
/// @param plan with ids of `cluster`; moves in ascending order of waves
/// @return a copy of `cluster` with the new placements and no history
/// @throws InvalidInput for what `validate(plan, cluster)` refuses; else with the first step that is not possible: a task that is not where the plan has it, that may
///     not be moved or evicted, or that does not fit; `cluster` is never changed
///
/// O(size of the cluster + steps). Deterministic.
[[nodiscard]] Cluster apply(const Cluster& cluster, const Plan& plan);

}  // namespace gpusched
