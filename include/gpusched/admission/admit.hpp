// SPDX-License-Identifier: Apache-2.0
// admit: lets a job in at the least cost, by placing, moving, evicting and borrowing, in one plan.
#pragma once

#include <gpusched/admission/options.hpp>
#include <gpusched/admission/result.hpp>
#include <gpusched/core/context.hpp>

#include <span>

namespace gpusched::admission {

/// Lets all pods of a job in, or none, at the least cost in GPU-seconds over all means together.
///
/// A job that does not fit can be let in by moving tasks elsewhere (make before break), by evicting tasks and placing them again,
/// by evicting them for good, and by borrowing what Standby tasks lend. One search decides on all of it, by the prices of
/// `Options`: for every node a lower bound on what it costs to displace enough for a pod, and an estimate that includes the places
/// of the displaced tasks; the nodes in the order of the estimates; on each the exact sets of tasks to displace; and for every
/// displaced task the cheapest of a free place, a place that others leave for it (nested up to `depth`), an eviction with a new
/// place, and an eviction without. Of jobs with several pods the pods come one after the other, and what was found is improved by
/// leaving out one of its nodes at a time.
///
/// Where the job fits as it is, the answer is that of `allocation::allocate`. A level that the job prefers is kept where that costs
/// no more. Who may move, and where to, is as for `consolidate` (`consolidation::make_scope`); nothing moves onto a node that was
/// empty before. Who may be evicted is as for `preempt`: a preemptible task of lower priority than every pod, neither locked,
/// standby nor a daemon. A gang that would fall below its `min_members` leaves whole, and is placed again whole or not at all.
/// Gangs of the pods themselves stay. Disruption budgets hold, unless they have a price. Moves and evictions make no room in a quota.
///
/// @param pods pending tasks, distinct, at least one; the cluster must hold no reservations
/// @return see Admission; the cluster is not changed. `verify::plan` accepts the plan, unless budgets were broken at a price or the
///     pods have local cores, which plans cannot be judged by
/// @throws InvalidInput as `allocate`, and for options out of range
/// O(nodes + tasks) and at most `search_limit` steps for each pod, and as many in all for a preferred level; each at most O(nodes)
/// and 2,000 sets of tasks; twice that where limits keep the job out, to find which. Deterministic unless a time limit or a cancellation strikes.
[[nodiscard]] Admission admit(const Cluster& cluster, std::span<const TaskId> pods,
                              const Options& options = {}, const Context& context = {});

}  // namespace gpusched::admission
