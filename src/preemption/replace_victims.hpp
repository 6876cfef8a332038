// SPDX-License-Identifier: Apache-2.0
// Victims that find room elsewhere, placed again once everybody has left and the preemptors run.
#pragma once

#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <span>
#include <vector>

namespace gpusched::preemption {

struct Decision;

namespace detail {

/// Places victims again, one after the other: the highest priorities first, then those of most GPUs, each on the feasible node
/// with the least idle GPUs. A gang of which fewer than `min_members` would run (all of them where it says nothing; of a subgroup, fewer than
/// its own) is left out whole;
/// so are victims with local cores, which plans cannot be judged by.
/// @param placed the preemptors
/// @return in an order in which each is feasible after those before it
[[nodiscard]] std::vector<Placement> place_victims_again(const Cluster& cluster,
                                                         std::span<const TaskId> victims,
                                                         std::span<const Placement> placed);

/// The same for a decision: fills `replaced`, and leaves the nodes where they go out of `vacated_nodes`.
void replace_victims(const Cluster& cluster, TaskId preemptor, Decision& decision);

}  // namespace detail
}  // namespace gpusched::preemption
