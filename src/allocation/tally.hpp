// SPDX-License-Identifier: Apache-2.0
// Tally: counts the nodes that the constraints of a task refuse, and finds the constraints to blame.
#pragma once

#include <gpusched/allocation/refusals.hpp>
#include <gpusched/model/feasibility.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::allocation::detail {

/// The nodes that each constraint, and each set of them, refuses.
struct Tally {
    struct Count {
        std::int64_t first = 0, alone = 0, any = 0;
        std::int64_t some = 0;          // of `alone`, nodes that have any of what it counts
        NodeId best = none<NodeId>;     // of `alone`, the first by name of those with the least missing
        NodeId closest = none<NodeId>;  // as `best`, but one that has any of what it counts comes first
        bool closest_has_any = false;
        std::int64_t least = 0;
    };
    struct Group {
        std::int64_t nodes = 0;
        NodeId first = none<NodeId>;
    };

    Tally(const Cluster& cluster, TaskId pod, std::span<const NodeId> nodes,
          ConstraintOrder order = ConstraintOrder::permanence);

    [[nodiscard]] Constraint constraint(std::size_t row) const { return refusals.rows()[row].constraint; }
    using Set = std::pair<const std::vector<std::uint32_t>, Group>;
    /// The smallest set; of equally small ones, the one with the fewest constraints that never change, then one
    /// without the GPU model, then the one with the most nodes, then the first. Null without nodes that are refused.
    [[nodiscard]] const Set* smallest() const;
    /// Describes what refuses the closest of the nodes that pass all constraints that never change; empty if there are
    /// none. Begins with a semicolon.
    [[nodiscard]] std::string describe_pool() const;
    /// Of the rows that alone refuse nodes: the one that costs least to remove, then the one with more nodes, then
    /// the first. `cost` is asked if there are several.
    [[nodiscard]] std::optional<std::size_t>
    row_to_blame(const std::function<std::int64_t(std::size_t)>& cost) const;

    /// Constraints without which some node would take the pod, and one of these nodes.
    struct Blame {
        std::vector<std::uint32_t> rows{};
        NodeId node = none<NodeId>;
        std::int64_t nodes = 0;  ///< that only these constraints refuse; 0 = all lack the GPU model
    };
    /// Blames the GPU model if all nodes lack it, or else the row to blame, or else the smallest set. Computes no
    /// costs: cordons are assumed to cost least if they refuse at least as many nodes as `pods`, then as
    /// `effort_to_remove` says. Empty without nodes that are refused.
    [[nodiscard]] Blame blame(std::int64_t pods = 1) const;
    /// The number of nodes that only this row refuses, without those that have nothing of what it counts, and a clause
    /// with the verb. All nodes if none has any.
    [[nodiscard]] std::pair<std::int64_t, std::string> passing(std::size_t row) const;
    struct Unusable {
        std::vector<std::uint32_t> rows{};
        std::string text{};
    };
    /// Names the fewest constraints that never change without which the task could use any of the nodes, and counts
    /// the nodes with room for it then. For a task that can use none of them.
    [[nodiscard]] Unusable describe_unusable(std::span<const NodeId> nodes) const;
    /// Describes why these rows refuse the node.
    [[nodiscard]] std::string describe(std::span<const std::uint32_t> of, NodeId node) const;

    const Cluster& cluster;
    Refusals refusals;
    std::vector<Count> rows;
    std::map<std::vector<std::uint32_t>, Group> sets;
    std::int64_t fit = 0;
};

/// Returns the nodes without those that fitted before other pods of the job were placed, and that a group constraint
/// refuses now. Returns all nodes if only nodes that the pod can never use would be left.
[[nodiscard]] std::vector<NodeId> without_own_obstacles(const Cluster& cluster, TaskId pod,
                                                        std::span<const NodeId> nodes,
                                                        const std::function<bool(NodeId)>& fitted);

/// How hard it is to remove a constraint without a known plan, from 1 to 4: what is in use, the state of nodes, what
/// never changes, the GPU model.
[[nodiscard]] std::int64_t effort_to_remove(Constraint constraint) noexcept;

/// The obstacle that a constraint stands for.
[[nodiscard]] Obstacle obstacle_of(Constraint constraint) noexcept;

}  // namespace gpusched::allocation::detail
