// SPDX-License-Identifier: Apache-2.0
// Waves: orders moves so that each can be carried out while every moving task still holds its old place.
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

/// A move as a search makes it: one after the other, each possible when its turn comes.
struct Step {
    TaskId task = none<TaskId>;
    NodeId from = none<NodeId>;
    NodeId to = none<NodeId>;
    GpuMask gpus = 0;
    std::uint32_t chain = 0;  ///< the number of its chain; steps are dropped chain by chain
    bool these_gpus = false;  ///< `gpus` and no others; else others may be taken, and none named means any
};

/// Moves in waves.
struct WaveOrder {
    std::vector<Move> moves;  ///< by ascending wave
    std::uint32_t waves = 0;
    std::int64_t hops = 0;            ///< moves to a temporary place
    std::int64_t dropped_chains = 0;  ///< chains of which a move found no turn
    Cluster after;                    ///< the snapshot as the moves leave it
};

/// Joins the steps of every task to one move and orders the moves into waves.
///
/// In a wave, every moving task holds its old and its new place; all moves of a wave fit at once, with every source
/// of that wave still held, within the limits of `options` on moves per wave, per node and per job, and as the rule of the options allows with both copies of all. So do tasks that can
/// only restart, whose moves say so: that their source is free when the wave starts is not used. No wave restarts more
/// tasks of a disruption budget than it allows. Moves lead to nodes that held a task other than daemons before the first wave, or, with
/// `open_price`, wherever steps lead; a node that ran empty in one wave may receive in a later one. A wave takes every
/// move that fits, in the order of the steps. Where none fits (moves wait for each other in a circle), a waiting task
/// hops to a temporary place; where that does not help, the chain of the first waiting move is dropped: its tasks
/// stay where they are.
///
/// @param cluster the snapshot; the moves are made on this copy
/// @param closed by NodeId: nodes that receive nothing, not even for a while
/// @param options `rule`, in the state of `cluster`, `open_price`, `max_moves`, `max_move_cost`, `max_disrupted`, `max_moves_per_wave`, `max_moves_per_node`,
///     `record_chains`
/// @param may_vacate by NodeId: nodes that may be empty in the end, as in `Scope`; empty: all. On the others a move takes the last
///     task away only while another task is on its way there. Where the chain that was to bring it is dropped, all moves are
///     ordered again without that chain
/// @param evictions tasks that leave before the first wave and stay away: their nodes may receive, and of disruption budgets they
///     are down
/// @return moves that `apply` accepts. O(steps x waves), a few times that where a node is not refilled
[[nodiscard]] WaveOrder order_into_waves(Cluster cluster, std::span<const Step> steps,
                                         std::span<const std::uint8_t> closed, const Options& options = {},
                                         std::span<const std::uint8_t> may_vacate = {},
                                         std::span<const TaskId> evictions = {});


/// A move that somebody wants.
struct WantedMove {
    TaskId task = none<TaskId>;
    NodeId to = none<NodeId>;
    GpuMask gpus = 0;  ///< on `to`, and no others; 0 = chosen: the tightest that fit
};

/// A wanted move that the plan does not make.
struct DroppedMove {
    std::size_t move = 0;  ///< its position in the list
    MoveExplanation why;   ///< what is in its way when the plan is done
};

/// What became of wanted moves.
struct OrderedMoves {
    Result result;                     ///< a valid plan of the moves that can be made, hops among them
    std::vector<DroppedMove> dropped;  ///< the others, in the order of the list
};

/// Makes a plan of moves that a heuristic of your own has chosen: orders them into waves, chooses GPUs, and drops what cannot be done.
///
/// Of several moves of one task the last counts. A wave takes every move that fits while all sources of the wave are still held, in the
/// order of the list; where moves wait for each other in a circle, one of them hops to a temporary place, and where that does not help
/// the first of them is put aside, and tried again once the others are made. What is left then is dropped. Nothing moves onto
/// nodes that were empty before the plan, unless `open_price` opens them.
///
/// @param options those that `make_scope` reads, the limits of waves, `rule`, `price` and `objective`
/// @throws InvalidInput for options out of range, tasks or nodes that do not exist and GPUs that a node does not have
/// @note deterministic. O(moves x waves), and a copy of the cluster; up to d times that where d moves are dropped
[[nodiscard]] OrderedMoves order_into_waves(const Cluster& cluster, std::span<const WantedMove> moves,
                                            const Options& options = {});

}  // namespace gpusched::consolidation
