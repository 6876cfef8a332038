// SPDX-License-Identifier: Apache-2.0
// Keeps the data that a ranker prepares per node, until the node changes.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/model/cluster.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace gpusched::allocation::detail {

/// For rankers without `prepare`: keeps nothing.
template <class R>
class PreparedNodes {
  public:
    void rebuild(const Cluster&) noexcept {}
    void usage_changed(const Cluster&, NodeId) noexcept {}
};

template <PreparingRanker R>
class PreparedNodes<R> {
  public:
    using State = decltype(std::declval<const R&>().prepare(std::declval<const Cluster&>(), NodeId{}));

    void rebuild(const Cluster& cluster) { states_.assign(cluster.node_slots(), std::nullopt); }
    void usage_changed(const Cluster&, NodeId node) noexcept {
        if (index(node) < states_.size()) states_[index(node)].reset();
    }

    const State& of(const Cluster& cluster, NodeId node, const R& ranker) {
        states_.resize(cluster.node_slots());
        auto& state = states_[index(node)];
        if (!state) state = ranker.prepare(cluster, node);
        return *state;
    }

  private:
    std::vector<std::optional<State>> states_;
};

}  // namespace gpusched::allocation::detail
