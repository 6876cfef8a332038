// SPDX-License-Identifier: Apache-2.0
// Waves: orders moves so that all moves of a wave fit at once while every moving task still holds its old
// place.
#pragma once

#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpusched::consolidation {

/// A move of a search. Each step is possible after those before it.
struct Step {
    TaskId task = none<TaskId>;
    NodeId from = none<NodeId>;
    NodeId to = none<NodeId>;
    GpuMask gpus = 0;
    std::uint32_t chain = 0;  ///< number of its chain; steps are dropped chain by chain
    bool these_gpus = false;  ///< only `gpus` will do; else others may be taken, and 0 means any
};

/// Moves in waves.
struct WaveOrder {
    std::vector<Move> moves;  ///< by ascending wave
    std::uint32_t waves = 0;
    std::int64_t hops = 0;            ///< moves to a temporary place
    std::int64_t dropped_chains = 0;  ///< chains with a move that fits into no wave
    Cluster after;                    ///< the snapshot as the moves leave it
};

/// Joins the steps of every task to one move and orders the moves into waves.
///
/// All moves of a wave fit at once while every moving task holds both places, within the limits of `options`
/// per wave, node and job, and as its rule allows. The same holds for tasks that can only restart: the free
/// place at their source is not used. A wave restarts at most as many tasks of a disruption budget as it
/// allows. Moves lead to nodes that held a task other than daemons before the first wave or, with
/// `open_price`, to any node. A node that ran empty in one wave may receive in a later one.
///
/// A wave takes every move that fits, in the order of the steps. If none fits (moves wait for each other in a
/// circle), a waiting task hops to a temporary place. If that does not help, the chain of the first waiting
/// move is dropped: its tasks stay where they are.
///
/// @param cluster the snapshot; the moves are made on this copy
/// @param closed by NodeId: nodes that receive nothing, even temporarily
/// @param options `rule`, in the state of `cluster`, `open_price`, `max_moves`, `max_move_cost`,
///     `max_disrupted`, `max_moves_per_wave`, `max_moves_per_node`, `record_chains`
/// @param may_vacate by NodeId: nodes that may be empty in the end, as in `Scope`; empty: all. The last task
///     leaves another node only while another task is on its way there. If that task's chain is dropped, all
///     moves are ordered again without the chain
/// @param evictions tasks that leave before the first wave and stay away: their nodes may receive, and they
///     count as down in disruption budgets
/// @return moves that `apply` accepts. O(steps x waves), a few times that if a node is not refilled
[[nodiscard]] WaveOrder order_into_waves(Cluster cluster, std::span<const Step> steps,
                                         std::span<const std::uint8_t> closed, const Options& options = {},
                                         std::span<const std::uint8_t> may_vacate = {},
                                         std::span<const TaskId> evictions = {});

/// A requested move.
struct WantedMove {
    TaskId task = none<TaskId>;
    NodeId to = none<NodeId>;
    GpuMask gpus = 0;  ///< only these GPUs on `to`; 0 = the tightest that fit
};

/// A requested move that the plan does not make.
struct DroppedMove {
    std::size_t move = 0;  ///< position in the list of requests
    MoveExplanation why;   ///< the obstacle after the plan
};

/// The result of ordering requested moves.
struct OrderedMoves {
    Result result;                     ///< a valid plan of the moves that can be made, with hops
    std::vector<DroppedMove> dropped;  ///< the others, in the order of the list
};

/// Makes a plan of moves from your own heuristic: orders them into waves, chooses GPUs, and drops impossible
/// moves.
///
/// The last of several moves of one task counts. A wave takes every move that fits while all sources of the
/// wave are still held, in the order of the list. If moves wait for each other in a circle, one of them hops
/// to a temporary place. If that does not help, the first of them is put aside and tried again after the
/// others, then dropped. Nothing moves onto nodes that were empty before the plan, unless `open_price` opens
/// them.
///
/// @param options those that `make_scope` reads, the limits of waves, `rule`, `price` and `objective`
/// @throws InvalidInput for options out of range, unknown tasks or nodes, and GPUs that a node does not have
/// @note deterministic. O(moves x waves), and a copy of the cluster; up to d times that if d moves are
///     dropped
[[nodiscard]] OrderedMoves order_into_waves(const Cluster& cluster, std::span<const WantedMove> moves,
                                            const Options& options = {});

}  // namespace gpusched::consolidation
