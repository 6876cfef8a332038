// SPDX-License-Identifier: Apache-2.0
// Scope: which tasks a plan may move, and which nodes may be vacated, receive tasks, or be opened.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <vector>

namespace gpusched::consolidation {

/// Flags of 0 and 1, derived once from the snapshot and the options and used by every algorithm of
/// consolidation.
struct Scope {
    std::vector<std::uint8_t> movable;     ///< by TaskId: may be moved
    std::vector<std::uint8_t> may_vacate;  ///< by NodeId: occupied, and all its tasks but daemons are movable
    std::vector<std::uint8_t>
        may_receive;  ///< by NodeId: occupied, schedulable, not exempt, not to be cleared
    /// By NodeId: as `may_receive`, but not occupied, if `open_price` allows moves onto such nodes; else
    /// empty.
    std::vector<std::uint8_t> may_open{};
    std::int64_t open_price = 0;  ///< see `Options`

    /// Returns whether the node is empty and may be opened.
    [[nodiscard]] bool opens(NodeId node) const noexcept {
        return !may_open.empty() && may_open[index(node)] != 0;
    }
    /// Returns whether the node receives tasks, possibly after it is opened.
    [[nodiscard]] bool receives(NodeId node) const noexcept {
        return may_receive[index(node)] != 0 || opens(node);
    }
};

/// Derives the scope from `clear`, `exempt`, `protect_core_members`, `max_disrupted` and `open_price` of
/// valid options.
[[nodiscard]] Scope make_scope(const Cluster& cluster, const Options& options);

namespace detail {
/// Returns whether the task would be down while it moves, and one of its disruption budgets does not allow
/// that.
[[nodiscard]] bool no_budget_left(const Inventory& inventory, TaskId task);
/// Clears the flags of the core of every job: as many running members as its subgroups and then the job need.
/// Members that cannot move count first.
void keep_core_members(const Cluster& cluster, std::vector<std::uint8_t>& movable);
/// Returns the sum of `move_cost` over the movable tasks of a node.
[[nodiscard]] std::int64_t cost_of_leaving(const Cluster& cluster, const Scope& scope, NodeId node);
}  // namespace detail

/// Returns groups of nodes that no movable task connects: nodes of one kind, and kinds linked by tasks that
/// may run on both. Largest first, then by first node; nodes ascending.
[[nodiscard]] std::vector<std::vector<NodeId>> components(const Cluster& cluster);

}  // namespace gpusched::consolidation
