// SPDX-License-Identifier: Apache-2.0
// Plan statistics: what a plan takes and what it gives, counted from the plan alone.
#pragma once

#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace gpusched::consolidation {

/// Costs and gains of a plan, whoever made it.
struct PlanStatistics {
    // Cost
    std::int64_t moves = 0;        ///< all moves, hops included
    std::int64_t moved_tasks = 0;  ///< tasks whose last node differs from their first
    std::int64_t move_cost = 0;    ///< sum of `move_cost` over all moves
    /// Sum of `move_cost` over the tasks whose last node or GPUs differ from their first: what a price is for.
    std::int64_t relocation_cost = 0;
    std::int64_t disturbed_jobs = 0;      ///< jobs with a moved member; a task without a job counts as one
    std::int64_t waves = 0;               ///< how many waves
    std::int64_t first_wave_moves = 0;    ///< moves of the first wave
    std::int64_t most_moves_at_once = 0;  ///< moves of the largest wave
    // Gain
    std::int64_t vacated_nodes = 0;  ///< nodes that hold a task other than daemons before and none after
    std::int64_t vacated_gpus = 0;   ///< their healthy GPUs
    std::int64_t opened_nodes = 0;   ///< nodes that held none but daemons before, and that moves lead to
    std::int64_t opened_gpus = 0;    ///< their healthy GPUs
    std::int64_t vacated_domains =
        0;  ///< deepest network domains (racks, access switches) that lose all their tasks
    /// Nodes with a task and an idle GPU before, as counted by fragmentation::occupancy.
    std::int64_t not_fully_occupied_before = 0;
    std::int64_t not_fully_occupied_after = 0;  ///< the same, after

    [[nodiscard]] double moves_per_vacated_node() const noexcept { return ratio(moves, vacated_nodes, 0); }
    [[nodiscard]] double vacated_gpus_per_move() const noexcept { return ratio(vacated_gpus, moves, 0); }
    [[nodiscard]] double vacated_nodes_per_move() const noexcept { return ratio(vacated_nodes, moves, 0); }
    [[nodiscard]] double first_wave_share() const noexcept { return ratio(first_wave_moves, moves, 1); }
    bool operator==(const PlanStatistics&) const = default;

  private:
    static double ratio(std::int64_t part, std::int64_t whole, double otherwise) noexcept {
        return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : otherwise;
    }
};
template <class F>
constexpr void visit_fields(std::type_identity<PlanStatistics>, F&& field) {
    field("moves", &PlanStatistics::moves);
    field("moved_tasks", &PlanStatistics::moved_tasks);
    field("move_cost", &PlanStatistics::move_cost);
    field("relocation_cost", &PlanStatistics::relocation_cost);
    field("disturbed_jobs", &PlanStatistics::disturbed_jobs);
    field("waves", &PlanStatistics::waves);
    field("first_wave_moves", &PlanStatistics::first_wave_moves);
    field("most_moves_at_once", &PlanStatistics::most_moves_at_once);
    field("vacated_nodes", &PlanStatistics::vacated_nodes);
    field("vacated_gpus", &PlanStatistics::vacated_gpus);
    field("opened_nodes", &PlanStatistics::opened_nodes);
    field("opened_gpus", &PlanStatistics::opened_gpus);
    field("vacated_domains", &PlanStatistics::vacated_domains);
    field("not_fully_occupied_before", &PlanStatistics::not_fully_occupied_before);
    field("not_fully_occupied_after", &PlanStatistics::not_fully_occupied_after);
}

/// Counts what `plan` does to `cluster`. O(nodes + moves), plus one copy of the cluster.
/// @throws InvalidInput for a plan that does not fit the snapshot
[[nodiscard]] PlanStatistics plan_statistics(const Cluster& cluster, const Plan& plan);

/// The same where `after`, the cluster as the plan leaves it, is at hand.
[[nodiscard]] PlanStatistics plan_statistics(const Cluster& before, const Cluster& after, const Plan& plan);

/// The nodes that hold a task other than daemons before and none after, ascending. O(nodes)
[[nodiscard]] std::vector<NodeId> vacated_nodes(const Cluster& before, const Cluster& after);

/// The nodes that held no task but daemons before and that moves lead to, ascending. O(moves)
[[nodiscard]] std::vector<NodeId> opened_nodes(const Cluster& before, std::span<const Move> moves);

}  // namespace gpusched::consolidation
