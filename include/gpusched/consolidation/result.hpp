// What consolidation returns: the plan, what it gains and costs, and how the search went.
#pragma once

#include <gpusched/core/stop_reason.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <vector>

namespace gpusched::consolidation {

/// What one round found.
struct RoundStatistics {
    std::int64_t vacated_nodes = 0;
    std::int64_t vacated_gpus = 0;
    std::int64_t moves = 0;  ///< moves of its chains, before chains of several rounds are joined
    bool operator==(const RoundStatistics&) const = default;
};

/// Numbers about a plan and about the search for it. The search counters do not depend on the machine.
struct Statistics {
    // The plan
    std::int64_t moves = 0;           ///< all moves, hops included
    std::int64_t hops = 0;            ///< moves to a temporary place
    std::int64_t move_cost = 0;       ///< sum of the moved tasks' `move_cost`
    std::int64_t disturbed_jobs = 0;  ///< jobs with a moved member; a task without a job counts as one
    std::int64_t vacated_nodes = 0;
    std::int64_t vacated_gpus = 0;               ///< healthy GPUs of the vacated nodes
    std::int64_t not_fully_occupied_before = 0;  ///< as counted by fragmentation::occupancy
    std::int64_t not_fully_occupied_after = 0;
    std::int64_t waves = 0;
    std::int64_t first_wave_moves = 0;
    std::int64_t dropped_chains = 0;  ///< nodes that the search vacated, but whose moves could not be ordered
    std::vector<RoundStatistics> rounds;

    // The search
    std::int64_t nodes_tried = 0;           ///< attempts to vacate a node
    std::int64_t eject_calls = 0;           ///< requests for a place, at all depths
    std::int64_t destinations_scanned = 0;  ///< destinations looked at
    std::int64_t requests_dominated = 0;    ///< requests answered by an earlier, easier one that failed

    [[nodiscard]] double moves_per_vacated_node() const noexcept {
        return vacated_nodes > 0 ? static_cast<double>(moves) / static_cast<double>(vacated_nodes) : 0.0;
    }
    [[nodiscard]] double first_wave_share() const noexcept {
        return moves > 0 ? static_cast<double>(first_wave_moves) / static_cast<double>(moves) : 1.0;
    }
    bool operator==(const Statistics&) const = default;
};

/// A plan (with its bound inside), what it is worth, and why the search ended.
struct Result {
    Plan plan;
    Statistics stats;
    StopReason stop_reason = StopReason::completed;
};

}  // namespace gpusched::consolidation
