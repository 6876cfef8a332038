// Snapshots without the names that tell whose they are.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/model/spec.hpp>

#include <cstdint>

namespace GPUSCHED_NAMESPACE::io {

/// Replaces every name by a numbered one, the same name always by the same.
///
/// Renamed are nodes, tasks, jobs, network domains, groups, and the keys and values of labels, selectors, taints and
/// tolerations. Order, quantities, times, GPU models, hardware and empty strings stay, so that the result poses
/// exactly the same problem: a plan for one fits the other, name by name, because both list nodes and tasks in the same
/// order. Names are numbered in an order drawn with `seed`, so that they do not tell how the old ones sort.
/// What remains may still identify a cluster to somebody who knows its sizes.
/// Same snapshot and seed, same result. O(n log n) in the number of names.
[[nodiscard]] ClusterSpec anonymize(const ClusterSpec& cluster, std::uint64_t seed);

}  // namespace GPUSCHED_NAMESPACE::io

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/io/impl/anonymize.ipp>
#endif
