// SPDX-License-Identifier: Apache-2.0
// The request shapes of a cluster itself: what its tasks ask for, and whole nodes.
#pragma once

#include <gpusched/fragmentation/shape.hpp>
#include <gpusched/model/cluster.hpp>

#include <vector>

namespace gpusched::fragmentation {

/// One shape for each number of GPUs that tasks of the cluster ask for, running and pending, and for each number that its nodes
/// have, in ascending order.
///
/// The CPU of a shape is what the median of those tasks asks for (the upper one of two); for a size of nodes that no task asks
/// for, the median per GPU of all tasks that ask for GPUs, times the GPUs. Fractions count as one GPU. Daemons, nodes without GPUs
/// and cordoned nodes do not count. One GPU without CPU where there are neither tasks nor nodes with GPUs.
/// Complexity: O(n log n) in the number of tasks and nodes.
[[nodiscard]] std::vector<Shape> own_shapes(const Cluster& cluster);

}  // namespace gpusched::fragmentation
