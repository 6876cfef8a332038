// SPDX-License-Identifier: Apache-2.0
// NodeMetric: a measure of the cluster that is a sum over its nodes.
#pragma once

#include <gpusched/core/ids.hpp>
#include <gpusched/model/cluster.hpp>

#include <concepts>

namespace gpusched::fragmentation {

/// A measure that adds up over nodes, so that a change on one node is one subtraction and one addition.
///
/// `state(cluster, node)` is the little of a node that the metric depends on, as a value (`State`); `zero()` is the
/// `Total` of no nodes; `add(total, node, state, sign)` adds (+1) or takes back (-1) a node's part, exactly (in
/// integers); `result(total)` is what callers read. The state of a slot that no node has adds nothing.
///
/// A metric that is built for one inventory serves all clusters that share it. Where it is to follow changes of membership it has
/// two more calls: `renew(inventory)` builds it again; `renew(inventory, node)` takes in that a node came, changed or left, and
/// returns true where all nodes must be measured again.
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
