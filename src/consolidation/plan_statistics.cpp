// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/consolidation/plan_statistics.hpp>
#include <gpusched/fragmentation/occupancy.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <utility>

namespace gpusched::consolidation {

namespace detail {

static std::int64_t vacated_domains(const Cluster& before, const Cluster& after) {
    const auto& inv = before.inventory();
    const Level deepest = inv.deepest_level();
    if (deepest == node_level) return 0;
    std::vector<std::uint8_t> used_before(inv.domain_count(deepest)), used_after(inv.domain_count(deepest));
    for (const auto node : before.nodes()) {
        if (!inv.position_known(deepest, node)) continue;
        const auto domain = index(inv.domain(deepest, node));
        used_before[domain] |= before.occupants(node) > 0;
        used_after[domain] |= after.occupants(node) > 0;
    }
    std::int64_t count = 0;
    for (std::size_t d = 0; d < used_before.size(); ++d) count += used_before[d] && !used_after[d];
    return count;
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<NodeId> vacated_nodes(const Cluster& before, const Cluster& after) {
    std::vector<NodeId> nodes;
    for (const auto node : before.nodes())
        if (before.occupants(node) > 0 && after.occupants(node) == 0) nodes.push_back(node);
    return nodes;
}

GPUSCHED_EXPORT std::vector<NodeId> opened_nodes(const Cluster& before, std::span<const Move> moves) {
    std::vector<NodeId> nodes;
    for (const auto& move : moves)
        if (before.occupants(move.to) == 0) nodes.push_back(move.to);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
}

GPUSCHED_EXPORT PlanStatistics plan_statistics(const Cluster& before, const Cluster& after,
                                               const Plan& plan) {
    const auto& inv = before.inventory();
    PlanStatistics stats;
    stats.moves = static_cast<std::int64_t>(plan.moves.size());
    stats.waves = plan.waves;
    std::int64_t in_wave = 0;  // moves of the wave of the last move
    const Move* before_it = nullptr;
    std::vector<std::uint8_t> task_moved(before.task_slots()), job_moved(inv.job_names.size());
    for (const auto& move : plan.moves) {
        stats.move_cost += inv.tasks.move_cost[index(move.task)];
        in_wave = before_it != nullptr && before_it->wave == move.wave ? in_wave + 1 : 1;
        before_it = &move;
        stats.most_moves_at_once = std::max(stats.most_moves_at_once, in_wave);
        stats.first_wave_moves += move.wave == 0;
        if (std::exchange(task_moved[index(move.task)], std::uint8_t{1})) continue;
        const bool elsewhere = after.node_of(move.task) != before.node_of(move.task);
        stats.moved_tasks += elsewhere;
        if (elsewhere || after.gpus_of(move.task) != before.gpus_of(move.task))
            stats.relocation_cost += inv.tasks.move_cost[index(move.task)];
        const auto job = inv.tasks.job[index(move.task)];
        stats.disturbed_jobs += job == none<JobId> || !std::exchange(job_moved[index(job)], std::uint8_t{1});
    }
    for (const auto node : vacated_nodes(before, after)) {
        ++stats.vacated_nodes;
        stats.vacated_gpus += gpu_count(before.healthy_gpus(node));
    }
    for (const auto node : opened_nodes(before, plan.moves)) {
        ++stats.opened_nodes;
        stats.opened_gpus += gpu_count(before.healthy_gpus(node));
    }
    stats.vacated_domains = detail::vacated_domains(before, after);
    stats.not_fully_occupied_before = fragmentation::occupancy(before).not_fully_occupied;
    stats.not_fully_occupied_after = fragmentation::occupancy(after).not_fully_occupied;
    return stats;
}

GPUSCHED_EXPORT PlanStatistics plan_statistics(const Cluster& cluster, const Plan& plan) {
    return plan_statistics(cluster, apply(cluster, plan), plan);
}

}  // namespace gpusched::consolidation
