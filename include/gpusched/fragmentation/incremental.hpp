// Evaluating a node metric: once over the whole cluster, or kept up to date while the cluster changes.
#pragma once

#include <gpusched/fragmentation/concepts.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::fragmentation {

/// The metric of the whole cluster. O(nodes).
template <NodeMetric M>
[[nodiscard]] auto evaluate(const M& metric, const Cluster& cluster) {
    auto total = metric.zero();
    for (const auto node : cluster.nodes()) metric.add(total, node, metric.state(cluster, node), +1);
    return metric.result(total);
}

/// A metric's value that follows a cluster through `assign`, `reserve`, `undo` and the rest.
///
/// Search algorithms change a few nodes at a time; re-measuring 40,000 of them after each step would dwarf the step.
/// Call `update` for every node on which something changed, in any order and as often as you like: the result is
/// that of `evaluate`, to the bit. The cluster itself is not kept.
template <NodeMetric M>
class Incremental {
  public:
    /// Measures the whole cluster. O(nodes).
    Incremental(M metric, const Cluster& cluster) : metric_(std::move(metric)), total_(metric_.zero()) {
        states_.resize(cluster.node_slots());
        for (const auto node : cluster.nodes()) {
            states_[index(node)] = metric_.state(cluster, node);
            metric_.add(total_, node, states_[index(node)], +1);
        }
    }

    /// Takes in what changed on `node`; true if it changed the node's part. O(1) in the number of nodes.
    bool update(const Cluster& cluster, NodeId node) {
        auto& old = states_[index(node)];
        auto now = metric_.state(cluster, node);
        if (now == old) return false;
        metric_.add(total_, node, old, -1);
        metric_.add(total_, node, now, +1);
        old = std::move(now);
        return true;
    }

    /// The metric's value as of the last updates.
    [[nodiscard]] auto result() const { return metric_.result(total_); }

    /// The node's part, as of its last update.
    [[nodiscard]] const typename M::State& state(NodeId node) const noexcept { return states_[index(node)]; }

    [[nodiscard]] const M& metric() const noexcept { return metric_; }

  private:
    M metric_;
    typename M::Total total_;
    std::vector<typename M::State> states_;
};

}  // namespace GPUSCHED_NAMESPACE::fragmentation
