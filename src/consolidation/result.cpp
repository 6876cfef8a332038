// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/consolidation/result.hpp>

#include <cstddef>
#include <string>
#include <type_traits>

namespace gpusched::consolidation {

namespace detail {
/// What a number of a round is called in `stats`; rounds are counted from 1 there.
static std::string round_name(std::size_t round, const char* field) {
    return "round_" + std::to_string(round + 1) + "_" + field;
}
}  // namespace detail

GPUSCHED_EXPORT std::map<std::string, double> to_stats(const Statistics& statistics) {
    std::map<std::string, double> stats;
    visit_fields(std::type_identity<Statistics>{}, [&](const char* name, auto member) {
        const auto& value = statistics.*member;
        if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>)
            stats[name] = static_cast<double>(value);
        else if (value)
            stats[name] = static_cast<double>(*value);
    });
    stats["rounds"] = static_cast<double>(statistics.rounds.size());
    for (std::size_t r = 0; r < statistics.rounds.size(); ++r)
        visit_fields(std::type_identity<RoundStatistics>{}, [&](const char* name, auto member) {
            stats[detail::round_name(r, name)] = static_cast<double>(statistics.rounds[r].*member);
        });
    return stats;
}

GPUSCHED_EXPORT std::vector<RoundStatistics> rounds_of(const PlanSpec& plan) {
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
