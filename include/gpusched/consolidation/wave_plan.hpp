// SPDX-License-Identifier: Apache-2.0
// Wave plan: moves of anybody's heuristic as a plan that can be carried out, and those that cannot be.
#pragma once

#include <gpusched/consolidation/explain_move.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace gpusched::consolidation {

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
