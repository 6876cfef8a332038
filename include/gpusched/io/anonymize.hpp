// SPDX-License-Identifier: Apache-2.0
// Snapshots without the names that tell whose they are.
#pragma once

#include <gpusched/model/spec.hpp>

#include <cstdint>

namespace gpusched::io {

/// Replaces every name by a numbered one, the same name always by the same.
///
/// Renamed are nodes, tasks, jobs, network domains, groups, disruption budgets, resources, classes of devices, and the keys
/// and values of labels, selectors, taints and tolerations. Some names stay, since they are the same in every cluster: classes
/// of devices that are MIG profiles (`1g.10gb`, `gpu:1g.10gb`, `nvidia.com/mig-1g.10gb`) or cards of `nvidia.com/gpu`, the key
/// `kubernetes.io/hostname` and the taint of cordons. Of a key that any task compares with Gt or Lt, the integers among all
/// values of labels, selectors and node affinity stay, since their sizes are part of the problem. Order, quantities, times, GPU models, hardware and empty strings stay, so that the result poses
/// exactly the same problem: a plan for one fits the other, name by name, because both list nodes and tasks in the same
/// order. New names of nodes, tasks, jobs and budgets sort as the old ones do, because ties go by name; all others are numbered in
/// an order drawn with `seed`.
/// What remains may still identify a cluster to somebody who knows its sizes.
/// Same snapshot and seed, same result. O(n log n) in the number of names.
[[nodiscard]] ClusterSpec anonymize(const ClusterSpec& cluster, std::uint64_t seed);

}  // namespace gpusched::io
