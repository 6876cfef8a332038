// SPDX-License-Identifier: Apache-2.0
// own_shapes(): derives request shapes from the tasks and node sizes of a cluster.
#pragma once

#include <gpusched/fragmentation/shape.hpp>
#include <gpusched/model/cluster.hpp>

#include <vector>

namespace gpusched::fragmentation {

/// Returns one shape per GPU count that a running or pending task requests or a node has, in ascending order.
///
/// The CPU of a shape is the median CPU of the tasks with this GPU count (the upper median). If only nodes
/// have this GPU count, it is the median CPU per GPU over all tasks with GPUs, times the GPU count. Fractions
/// count as one GPU. Daemons, nodes without GPUs and cordoned nodes do not count. If there are neither tasks
/// nor nodes with GPUs, the result is one GPU without CPU.
///
/// O(n log n) in the number of tasks and nodes.
[[nodiscard]] std::vector<Shape> own_shapes(const Cluster& cluster);

}  // namespace gpusched::fragmentation
