#pragma once

#include <gpusched/consolidation/result.hpp>

#include <cstddef>
#include <string>

namespace gpusched::consolidation {

namespace detail {
/// What a number of a round is called in `stats`; rounds are counted from 1 there.
inline std::string round_name(std::size_t round, const char* field) {
    return "round_" + std::to_string(round + 1) + "_" + field;
}
}  // namespace detail

GPUSCHED_INLINE PlanSpec to_spec(const Result& result, const Cluster& cluster) {
    auto spec = gpusched::to_spec(result.plan, cluster);
    const auto& s = result.stats;
    const auto put = [&](const std::string& name, std::int64_t value) {
        spec.stats[name] = static_cast<double>(value);
    };
    visit_fields(std::type_identity<Statistics>{},
                 [&](const char* name, auto member) { put(name, s.*member); });
    put("rounds", static_cast<std::int64_t>(s.rounds.size()));
    for (std::size_t r = 0; r < s.rounds.size(); ++r)
        visit_fields(std::type_identity<RoundStatistics>{}, [&](const char* name, auto member) {
            put(detail::round_name(r, name), s.rounds[r].*member);
        });
    return spec;
}

GPUSCHED_INLINE std::vector<RoundStatistics> rounds_of(const PlanSpec& plan) {
    std::vector<RoundStatistics> rounds;
    for (bool found = true; found;) {
        found = false;
        RoundStatistics round;
        visit_fields(std::type_identity<RoundStatistics>{}, [&](const char* name, auto member) {
            const auto at = plan.stats.find(detail::round_name(rounds.size(), name));
            // A plan of other origin may hold anything under that name.
            if (at == plan.stats.end() || !(at->second >= 0 && at->second <= 0x1p53)) return;
            round.*member = static_cast<std::int64_t>(at->second);
            found = true;
        });
        if (found) rounds.push_back(round);
    }
    return rounds;
}

}  // namespace gpusched::consolidation
