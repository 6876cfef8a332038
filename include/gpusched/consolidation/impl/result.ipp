#pragma once

#include <gpusched/consolidation/result.hpp>

#include <string>

namespace gpusched::consolidation {

GPUSCHED_INLINE PlanSpec to_spec(const Result& result, const Cluster& cluster) {
    auto spec = gpusched::to_spec(result.plan, cluster);
    const auto& s = result.stats;
    const auto put = [&](const std::string& name, std::int64_t value) {
        spec.stats[name] = static_cast<double>(value);
    };
    put("moves", s.moves);
    put("moved_tasks", s.moved_tasks);
    put("move_cost", s.move_cost);
    put("disturbed_jobs", s.disturbed_jobs);
    put("waves", s.waves);
    put("first_wave_moves", s.first_wave_moves);
    put("most_moves_at_once", s.most_moves_at_once);
    put("vacated_nodes", s.vacated_nodes);
    put("vacated_gpus", s.vacated_gpus);
    put("vacated_domains", s.vacated_domains);
    put("not_fully_occupied_before", s.not_fully_occupied_before);
    put("not_fully_occupied_after", s.not_fully_occupied_after);
    put("hops", s.hops);
    put("dropped_chains", s.dropped_chains);
    put("nodes_tried", s.nodes_tried);
    put("eject_calls", s.eject_calls);
    put("destinations_scanned", s.destinations_scanned);
    put("requests_dominated", s.requests_dominated);
    put("rounds", static_cast<std::int64_t>(s.rounds.size()));
    for (std::size_t r = 0; r < s.rounds.size(); ++r) {
        const auto name = "round_" + std::to_string(r + 1) + "_";
        put(name + "vacated_nodes", s.rounds[r].vacated_nodes);
        put(name + "vacated_gpus", s.rounds[r].vacated_gpus);
        put(name + "moves", s.rounds[r].moves);
    }
    return spec;
}

}  // namespace gpusched::consolidation
