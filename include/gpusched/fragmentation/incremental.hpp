// SPDX-License-Identifier: Apache-2.0
// Node metrics: measures that are sums over nodes, evaluated once or kept up to date while the cluster
// changes.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/model/cluster.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

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

/// The base of a metric that sums up each field over the nodes. The state of a node is a struct of numbers with
/// a table of fields.
template <Described Sums>
struct SumOfFields {
    using State = Sums;
    using Total = Sums;
    [[nodiscard]] static Total zero() noexcept { return {}; }
    static void add(Total& total, NodeId, const State& state, int sign) noexcept {
        visit_fields(std::type_identity<Sums>{}, [&](const char*, auto member, const auto&...) {
            total.*member += sign * state.*member;
        });
    }
    [[nodiscard]] static Sums result(const Total& total) noexcept { return total; }
};

/// Returns the metric of the whole cluster. O(nodes).
template <NodeMetric M>
[[nodiscard]] auto evaluate(const M& metric, const Cluster& cluster) {
    auto total = metric.zero();
    for (const auto node : cluster.nodes()) metric.add(total, node, metric.state(cluster, node), +1);
    return metric.result(total);
}

/// Keeps the value of a metric up to date while a cluster changes.
///
/// Search algorithms change a few nodes at a time. Measuring 40,000 nodes again after each step would take
/// much longer than the step. `Incremental` is a follower (follower.hpp). Inside `Followed` it applies
/// committed changes. A search calls `usage_changed` for every node that it changed, in any order, any number
/// of times, also after `undo`. The result is identical to `evaluate`, to the bit. The cluster itself is not
/// stored.
template <NodeMetric M>
class Incremental {
  public:
    /// Measures nothing yet; for use with `Followed`.
    explicit Incremental(M metric) : metric_(std::move(metric)), total_(metric_.zero()) {}
    /// Measures the whole cluster. O(nodes).
    Incremental(M metric, const Cluster& cluster) : Incremental(std::move(metric)) { rebuild(cluster); }

    /// Measures the whole cluster. O(nodes).
    void rebuild(const Cluster& cluster) {
        if constexpr (requires { metric_.renew(cluster.inventory()); }) metric_.renew(cluster.inventory());
        measure(cluster);
    }
    /// Measures `node` again. Returns true if its part changed. The cost does not depend on the number of
    /// nodes.
    bool usage_changed(const Cluster& cluster, NodeId node) {
        auto& old = states_[index(node)];
        auto now = metric_.state(cluster, node);
        if (now == old) return false;
        metric_.add(total_, node, old, -1);
        metric_.add(total_, node, now, +1);
        old = std::move(now);
        return true;
    }
    /// Updates the value after the node was added, changed or removed. O(nodes) if the metric must be
    /// rebuilt.
    void node_changed(const Cluster& cluster, NodeId node) {
        if constexpr (requires { metric_.renew(cluster.inventory(), node); })
            if (metric_.renew(cluster.inventory(), node)) return measure(cluster);
        if (states_.size() < cluster.node_slots()) states_.resize(cluster.node_slots());
        usage_changed(cluster, node);
    }

    /// Returns the metric's value as of the last update.
    [[nodiscard]] auto result() const { return metric_.result(total_); }

    /// Returns the node's part as of its last update.
    [[nodiscard]] const typename M::State& state(NodeId node) const noexcept { return states_[index(node)]; }

    [[nodiscard]] const M& metric() const noexcept { return metric_; }

  private:
    void measure(const Cluster& cluster) {
        total_ = metric_.zero();
        states_.assign(cluster.node_slots(), {});
        for (const auto node : cluster.nodes()) {
            states_[index(node)] = metric_.state(cluster, node);
            metric_.add(total_, node, states_[index(node)], +1);
        }
    }

    M metric_;
    typename M::Total total_;
    std::vector<typename M::State> states_;
};

}  // namespace gpusched::fragmentation
