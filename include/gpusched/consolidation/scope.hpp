// SPDX-License-Identifier: Apache-2.0
// Scope: which tasks a plan may move, which nodes it may vacate, and which may receive.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <vector>

namespace gpusched::consolidation {

/// Flags of 0 and 1, derived once from the snapshot and the options and used by every algorithm here.
struct Scope {
    std::vector<std::uint8_t> movable;     ///< by TaskId: may be moved
    std::vector<std::uint8_t> may_vacate;  ///< by NodeId: occupied, with nothing on it that must stay
    std::vector<std::uint8_t>
        may_receive;  ///< by NodeId: occupied, schedulable, not exempt, not to be cleared
    /// By NodeId: the same, but not occupied, where `open_price` lets tasks move onto such nodes; empty where it is absent.
    std::vector<std::uint8_t> may_open{};
    std::int64_t open_price = 0;  ///< what that costs, see `Options`

    [[nodiscard]] bool opens(NodeId node) const noexcept {
        return !may_open.empty() && may_open[index(node)] != 0;
    }
    /// It receives, or does so once it is opened.
    [[nodiscard]] bool receives(NodeId node) const noexcept {
        return may_receive[index(node)] != 0 || opens(node);
    }
};

/// Reads `clear`, `exempt`, `protect_core_members`, `max_disrupted` and `open_price` of the options, which must be valid.
[[nodiscard]] Scope make_scope(const Cluster& cluster, const Options& options);

namespace detail {
/// True for a task that would be down while it moves, which one of its disruption budgets does not allow.
[[nodiscard]] bool no_budget_left(const Inventory& inventory, TaskId task);
/// Clears the flags of the core of every job: its first members that run, those that cannot move before those that can, as many
/// as its subgroups and then the whole of it need.
void keep_core_members(const Cluster& cluster, std::vector<std::uint8_t>& movable);
}  // namespace detail

/// Groups of nodes that no movable task connects: nodes of one kind, and kinds linked by tasks that may run on
/// both. Largest first, then by first node; nodes ascending.
[[nodiscard]] std::vector<std::vector<NodeId>> components(const Cluster& cluster);

}  // namespace gpusched::consolidation
