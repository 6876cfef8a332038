// SPDX-License-Identifier: Apache-2.0
// Bin packing: the relaxation of consolidation on which bounds are proved, and its pattern LP.
#pragma once

#include <gpusched/consolidation/scope.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/lp.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace gpusched::consolidation::detail {

/// Movable tasks with equal requests.
struct Item {
    std::uint32_t requirement = 0;
    std::int64_t gpu_milli = 0;
    bool fraction = false;
    std::int64_t cpu_milli = 0, memory_mib = 0;
    std::int64_t count = 0;
};

/// Nodes with equal capacity for movable tasks: all but the usage of fixed tasks. Capacity that Standby tasks
/// lend counts as free, because some tasks can take it.
struct Bin {
    std::uint32_t node_class = 0;
    bool may_vacate = false;
    bool may_open = false;    ///< empty unless it is opened
    std::int64_t weight = 0;  ///< healthy GPUs of one such node
    std::int64_t gpu_milli = 0, whole_gpus = 0, cpu_milli = 0, memory_mib = 0;
    std::int64_t count = 0;
    std::int64_t cost = 0;  ///< of moving the tasks of one such node away; 0 unless requested
};

/// One component. Groups, network, hardware locality and the order of moves are relaxed.
struct BinPacking {
    std::vector<Item> items;
    std::vector<Bin> bins;
    /// (requirement, node class) of tasks that run on a node to which they could not newly go; sorted.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> misplaced;
};

/// @param with_costs bins are distinguished by the cost of moving their tasks away
[[nodiscard]] BinPacking make_bin_packing(const Cluster& cluster, const Scope& scope,
                                          std::span<const NodeId> component, bool with_costs = false);

/// By bin: the loss if one such node stays occupied, or is opened; 0 for nodes that stay in any case.
using Stakes = std::vector<std::int64_t>;

/// Returns the least sum of stakes that is lost, by dual feasible functions, for each of `stakes`.
///
/// A task weighs lambda * f_a(GPUs) + (1 - lambda) * cores (or memory), with f_a(x) = floor(x / a) for a in
/// 1, 2, 4, 8, 16 or f(x) = x. The weight of the tasks that does not fit on the fixed nodes must lie on nodes
/// that stay.
[[nodiscard]] std::vector<std::int64_t> least_stay(const BinPacking& packing, std::span<const Stakes> stakes);

/// The least of the nodes that may be vacated, and of their GPUs, that must stay occupied.
struct MustStay {
    std::int64_t nodes = 0;
    std::int64_t gpus = 0;
};

/// Bounds nodes and GPUs by dual feasible functions.
[[nodiscard]] MustStay counting_bound(const BinPacking& packing);

/// Returns the least sum of stakes that is lost, by the linear relaxation over *patterns*: sets of items that
/// fill one bin (P. Gilmore, R. Gomory, A linear programming approach to the cutting stock problem, 1961).
/// GPUs and cores are rounded down to a grid, which only weakens the bound; memory is relaxed.
///
/// Each iteration solves the LP over the patterns found so far, and prices new ones by a knapsack over the
/// whole grid at once. For any prices p of the items, p . counts + sum of bins * min(0, cost - best pattern)
/// bounds the optimum from below. The best such value, rounded safely, is returned, so that errors of the
/// solver cannot invalidate the bound. Stops when rounding closes the gap, or when the budget is exhausted.
[[nodiscard]] std::int64_t least_stay(const BinPacking& packing, const Stakes& stakes,
                                      const Inventory& inventory, const LpSolver& lp, Budget& budget);

/// Bounds nodes and GPUs by the pattern relaxation.
/// @param known a bound of the same packing; the result is at least as strict
[[nodiscard]] MustStay pattern_bound(const BinPacking& packing, MustStay known, const Inventory& inventory,
                                     const LpSolver& lp, Budget& budget);

}  // namespace gpusched::consolidation::detail
