// SPDX-License-Identifier: Apache-2.0
// SlotBound: what plans can be worth at a price, since room for large tasks has to be made by further moves.
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
/// Let f(g) = floor(g / s) count slots of s whole GPUs. What arrives at a node fits into its idle slots and those that departures
/// make, of which each makes at most one more than it takes elsewhere: floor(a + b) <= floor(a) + ceil(b). So over all nodes
/// that stay, with n the vacated ones and k the moves of tasks from nodes that stay,
///
///     sum_n f(tasks of n) <= sum of idle slots + k        for every s,
///     sum_n demand of n   <= sum of what is free          for GPUs and for cores, whatever moves.
///
/// A task that comes back to other GPUs of its node has moved, too: fractions that do so leave GPUs idle. (A fraction has a part of
/// one GPU.) Multipliers l_s >= 0 with a sum of at most the price of the cheapest move, and u >= 0, then bound the value by
///
///     sum over nodes of max(value if vacated - l f - u demand, l idle + u free).
///
/// A node that may be opened gives what it has at a cost, or nothing: max(0, l idle + u free - cost). No task leaves it, and what arrives
/// fits into its idle slots. Any multipliers do; good ones are found by subgradients.
class SlotBound {
  public:
    /// @param weights by NodeId: what vacating the node is worth, >= 0
    SlotBound(const Cluster& cluster, const Scope& scope, std::span<const NodeId> component,
              std::span<const std::int64_t> weights);

    /// In thousandths. Calls with descending prices start from the multipliers of the call before.
    [[nodiscard]] std::int64_t value_at_most(std::int64_t price);

  private:
    static constexpr std::size_t most_sizes = 6, terms = most_sizes + 2;
    using Terms = std::array<double, terms>;
    struct Node {
        std::int64_t weight, cost;
        bool may_vacate;           // or may be left empty
        Terms takes, gives;        // when it is vacated; when it stays
        std::int64_t opening = 0;  // thousandths that are lost when it stays
    };
    [[nodiscard]] double evaluate(const Terms& multipliers, std::int64_t price, Terms& gradient) const;

    std::vector<Node> nodes_;
    Terms scale_{}, start_{};
    std::int64_t least_cost_ = 0;
};

}  // namespace gpusched::consolidation::detail
