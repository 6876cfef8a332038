// SPDX-License-Identifier: Apache-2.0
// SlotBound: bounds the value of plans at a price, given that a slot for a large task takes further moves.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/model/cluster.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpusched::consolidation::detail {

/// A Lagrangian bound on the value of plans for one component.
///
/// Let f(g) = floor(g / s) count slots of s whole GPUs. Arriving tasks fit into the idle slots of a node and
/// those of departing tasks. Each departing task makes at most one slot more than it takes elsewhere, since
/// floor(a + b) <= floor(a) + ceil(b). So over all nodes that stay, with n the vacated ones and k the moves
/// of tasks from nodes that stay,
///
///     sum_n f(tasks of n) <= sum of idle slots + k        for every s,
///     sum_n demand of n   <= sum of free capacity         for GPUs and for cores, whatever moves.
///
/// A task that returns to other GPUs of its node has moved, too: fractions that do so leave GPUs idle. (A
/// fraction has a part of one GPU.) Multipliers l_s >= 0 with a sum of at most the price of the cheapest
/// move, and u >= 0, then bound the value by
///
///     sum over nodes of max(value if vacated - l f - u demand, l idle + u free).
///
/// A node that may be opened gives its capacity at a cost, or nothing: max(0, l idle + u free - cost). No
/// task leaves it, and arriving tasks fit into its idle slots. Any multipliers are valid; subgradients find
/// good ones.
class SlotBound {
  public:
    /// @param weights by NodeId: weight of vacating the node, >= 0
    SlotBound(const Cluster& cluster, const Scope& scope, std::span<const NodeId> component,
              std::span<const std::int64_t> weights);

    /// Returns the bound in thousandths. Each call starts from the multipliers of the last one, so prices
    /// should descend.
    [[nodiscard]] std::int64_t value_at_most(std::int64_t price);

  private:
    static constexpr std::size_t most_sizes = 6, terms = most_sizes + 2;
    using Terms = std::array<double, terms>;
    struct Node {
        std::int64_t weight, cost;
        bool may_vacate;           // or may stay empty
        Terms takes, gives;        // if vacated; if it stays
        std::int64_t opening = 0;  // thousandths that are lost if it stays
    };
    [[nodiscard]] double evaluate(const Terms& multipliers, std::int64_t price, Terms& gradient) const;

    std::vector<Node> nodes_;
    Terms scale_{}, start_{};
    std::int64_t least_cost_ = 0;
};

}  // namespace gpusched::consolidation::detail
