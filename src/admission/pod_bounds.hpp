// SPDX-License-Identifier: Apache-2.0
// PodBounds: what the pods cost at least, wherever they go.
#pragma once

#include "admission/node_bounds.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace gpusched::admission::detail {

/// A lower bound on the cost of every way to let the pods in, from the bounds of nodes alone. Pods that are alike and need a node each have
/// it node by node as well.
class PodBounds {
  public:
    /// @param needed_milli thousandths of a GPU that must be lost for good
    PodBounds(const Cluster& snapshot, std::span<const TaskId> pods, NodeBounds& bounds,
              std::int64_t needed_milli)
        : snapshot_(snapshot), inv_(snapshot.inventory()), pods_(pods), bounds_(bounds),
          needed_milli_(needed_milli) {}

    /// Of every way with all pods on these nodes (ascending; empty = everywhere); `never` = there is none. What follows is about the
    /// region that was asked for last.
    [[nodiscard]] std::int64_t of_region(std::span<const NodeId> region);
    /// Whether each pod needs a node of its own, so that there are bounds for fewer pods.
    [[nodiscard]] bool known() const noexcept { return !cheapest_.empty(); }
    /// What so many pods cost at least.
    [[nodiscard]] std::int64_t cheapest(std::int64_t pods) const {
        return cheapest_[static_cast<std::size_t>(pods)];
    }
    /// What a pod costs on the node at least.
    [[nodiscard]] std::int64_t at(NodeId node) const { return at_[index(node)]; }

  private:
    bool find(std::span<const std::uint8_t> inside);

    const Cluster& snapshot_;
    const Inventory& inv_;
    std::span<const TaskId> pods_;
    NodeBounds& bounds_;
    std::int64_t needed_milli_;
    std::vector<std::int64_t> cheapest_{};  // by number of pods
    std::vector<std::int64_t> at_{};        // by node; empty like `cheapest_`
};

}  // namespace gpusched::admission::detail
