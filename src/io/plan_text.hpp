// SPDX-License-Identifier: Apache-2.0
// What the text forms of a plan have in common.
#pragma once

#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace gpusched::io::detail {

/// The moves in the order in which they happen.
inline std::vector<const PlanSpec::Move*> moves_by_wave(const PlanSpec& plan) {
    std::vector<const PlanSpec::Move*> moves;
    for (const auto& move : plan.moves) moves.push_back(&move);
    std::sort(moves.begin(), moves.end(), [](const auto* a, const auto* b) {
        return a->wave != b->wave ? a->wave < b->wave : a < b;  // both point into plan.moves
    });
    return moves;
}

/// The numbers with a separator between them.
inline std::string join(const std::vector<int>& numbers, const char* separator) {
    std::string out;
    for (const int number : numbers) out += (out.empty() ? "" : separator) + std::to_string(number);
    return out;
}

}  // namespace gpusched::io::detail
