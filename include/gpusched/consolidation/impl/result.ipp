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
    visit_fields(std::type_identity<Statistics>{},
                 [&](const char* name, auto member) { put(name, s.*member); });
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
