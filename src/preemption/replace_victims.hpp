// SPDX-License-Identifier: Apache-2.0
// Places victims again on other GPUs, after all victims have left and the preemptors run.
#pragma once

#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <span>
#include <vector>

namespace gpusched::preemption {

struct Decision;

namespace detail {

/// Places victims again in sequence: the highest priority first, then the most GPUs, each on the feasible
/// node with the fewest idle GPUs. Omits gangs that would run with fewer than `min_members` (all members if
/// the job sets none), in the job or a subgroup. Omits victims with local cores, because plans do not
/// describe them.
/// @param placed the preemptors
/// @return placements in an order in which each is feasible after the earlier ones
[[nodiscard]] std::vector<Placement> place_victims_again(const Cluster& cluster,
                                                         std::span<const TaskId> victims,
                                                         std::span<const Placement> placed);

/// The same for a decision: fills `replaced`, and removes their nodes from `vacated_nodes`.
void replace_victims(const Cluster& cluster, TaskId preemptor, Decision& decision);

}  // namespace detail
}  // namespace gpusched::preemption
