// SPDX-License-Identifier: Apache-2.0
// NodeMetric: a measure of the cluster that is a sum over its nodes.
#pragma once

#include <gpusched/core/ids.hpp>
#include <gpusched/model/cluster.hpp>

#include <concepts>

namespace gpusched::fragmentation {

/// A measure that is a sum over nodes. A change on one node costs one subtraction and one addition.
///
/// - `state(cluster, node)` returns the properties of a node that the metric depends on, as a value of type
///   `State`. The state of an unused node slot adds nothing.
/// - `zero()` returns the `Total` of no nodes.
/// - `add(total, node, state, sign)` adds (+1) or subtracts (-1) a node's part. It is exact (in integers).
/// - `result(total)` returns the value for callers.
///
/// A metric built for one inventory serves all clusters that share it. A metric that follows membership
/// changes also has two functions:
///
/// - `renew(inventory)` rebuilds the metric.
/// - `renew(inventory, node)` updates it after a node was added, changed or removed. It returns true if all
///   nodes must be measured again.
template <class M>
concept NodeMetric = std::copyable<typename M::State> && std::equality_comparable<typename M::State> &&
                     requires(const M& metric, const Cluster& cluster, NodeId node, typename M::State state,
                              typename M::Total total) {
                         { metric.state(cluster, node) } -> std::same_as<typename M::State>;
                         { metric.zero() } -> std::same_as<typename M::Total>;
                         metric.add(total, node, state, +1);
                         metric.result(total);
                     };

}  // namespace gpusched::fragmentation
