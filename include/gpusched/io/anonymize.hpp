// SPDX-License-Identifier: Apache-2.0
// Replaces the names in a snapshot, so that it no longer identifies its cluster.
#pragma once

#include <gpusched/model/spec.hpp>

#include <cstdint>

namespace gpusched::io {

/// Replaces every name by a numbered one; equal names become equal names.
///
/// It renames nodes, tasks, jobs, network domains, groups, disruption budgets, resources, classes of devices,
/// and the keys and values of labels, selectors, taints and tolerations. It keeps names that are the same in
/// every cluster: MIG profiles (`1g.10gb`, `gpu:1g.10gb`, `nvidia.com/mig-1g.10gb`), cards of
/// `nvidia.com/gpu`, the key `kubernetes.io/hostname` and the taint of cordons. For a key that any task
/// compares with Gt or Lt, integer values stay, since their sizes are part of the problem. Details of waiting
/// reasons and notes of tasks are dropped.
///
/// Order, quantities, times, GPU models, hardware and empty strings stay, so a plan for one cluster fits the
/// other, name by name. New names of nodes, tasks, jobs and budgets sort as the old ones, because ties are
/// broken by name; all others are numbered in an order drawn with `seed`. Sizes and quantities may still
/// identify a cluster. Same snapshot and seed, same result. O(n log n) in the number of names.
[[nodiscard]] ClusterSpec anonymize(const ClusterSpec& cluster, std::uint64_t seed);

}  // namespace gpusched::io
