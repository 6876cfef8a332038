// SPDX-License-Identifier: Apache-2.0
// Partitioners: how the cluster is cut into groups that are solved on their own.
#pragma once

#include <gpusched/consolidation/concepts.hpp>

namespace gpusched::consolidation {

/// Random groups of `partition_size` nodes, new ones in every round: the paper's divide and conquer.
struct RandomGroups {
    Partition operator()(const Cluster& cluster, std::size_t partition_size, Rng& rng) const;
};

/// One pool per GPU model; models that some movable task links (it may run on both) share a pool. A group can only use the room
/// that it contains, so that pools are cut as late as possible: those of more than `largest_group` nodes, whose search would take
/// time that grows with the square. Their nodes are dealt out to parts `dealt_together` at a time: parts are alike, and what lies side by
/// side in memory stays together.
struct ByGpuModel {
    static constexpr std::size_t largest_group = 5'000, dealt_together = 64;
    Partition operator()(const Cluster& cluster, std::size_t partition_size, Rng& rng) const;
};

/// Whole domains of the network's deepest level, taken in order within each pool until `partition_size` nodes are
/// reached, so that moves stay near.
struct BySwitch {
    Partition operator()(const Cluster& cluster, std::size_t partition_size, Rng& rng) const;
};

/// Groups grown around random nodes over the network tree within each pool: a node's access switch before its
/// aggregation switch before the rest.
struct ByLocality {
    Partition operator()(const Cluster& cluster, std::size_t partition_size, Rng& rng) const;
};

}  // namespace gpusched::consolidation
