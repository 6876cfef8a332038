// make_room: moves that let a gang in which does not fit, within the domain that it needs.
#pragma once

#include <gpusched/allocation/allocate.hpp>
#include <gpusched/config.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/stop_reason.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <span>

namespace GPUSCHED_NAMESPACE::consolidation {

/// Moves, then the gang's placement.
struct Room {
    /// Waves of moves, then the placements of all pods; empty when no room was found.
    Plan plan{};
    /// Where the pods go; when they do not, what binds before any move.
    allocation::Allocation allocation{};
    std::int64_t move_cost = 0;           ///< sum of the moved tasks' `move_cost`
    std::int64_t domains_considered = 0;  ///< regions in which moves were tried; the whole cluster is one
    StopReason stop_reason = StopReason::completed;
};

/// Makes room for a gang by moving running tasks elsewhere, as one plan that can be carried out: moves in
/// make-before-break waves, then the placement.
///
/// The ASI paper (section 4.1) migrates across access switches with consolidation under the network as a constraint. Where
/// `allocate` finds a placement there are no moves. Otherwise, in every domain of the level that the gang requires (without
/// one: of the level that it prefers, and then in the whole cluster), the pods that fit take their places, and for each of the others the nodes are tried from the
/// one that is cheapest to free: the fewest movable tasks that must leave it (by move cost), each to the tightest node outside
/// the domain, or else inside it. What does not end by such direct moves is tried by `consolidate`, which vacates whole nodes
/// of the domain with chains of moves, in at most eight domains (of a level that is only preferred: in the whole cluster).
/// The plan of least move cost wins; ties: less traffic across domains, less entropy, fewer moves, then the domain's order.
///
/// Who may move and who may receive is as for `consolidate`: nothing moves onto a node that was empty before, and `options` limit moves,
/// costs, waves and disruption. A heuristic: no answer does not prove that there is none.
///
/// @param pods pending tasks, distinct, at least one
/// @param allocate as for `allocate`, but without a `time_limit` of its own
/// @param options preset, depth, rounds, seed, `time_limit`, limits on moves, `exempt` (nothing leaves these nodes and nothing
///        moves onto them; the gang may still use what is idle there). `clear` must be absent
/// @return see Room; the cluster is not changed
/// @throws InvalidInput as `allocate` and `consolidate`
/// O(domains x (pods + tasks moved) x nodes). Deterministic unless a time limit or a cancellation strikes.
[[nodiscard]] Room make_room(const Cluster& cluster, std::span<const TaskId> pods,
                             const allocation::AllocateOptions& allocate = {}, const Options& options = {},
                             const Context& context = {});

}  // namespace GPUSCHED_NAMESPACE::consolidation

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/consolidation/impl/make_room.ipp>
#endif
