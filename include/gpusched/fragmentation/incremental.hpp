// SPDX-License-Identifier: Apache-2.0
// Evaluates a node metric: once over the whole cluster, or incrementally while the cluster changes.
#pragma once

#include <gpusched/fragmentation/concepts.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace gpusched::fragmentation {

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
