// SPDX-License-Identifier: Apache-2.0
// even_steps: which of ascending numbers stay where only so many may.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpusched::consolidation::detail {

/// The positions of the first, the last, and between them of the numbers closest to even steps, each once and ascending; all where
/// there are no more than `most`, the last alone for 1.
/// @param numbers ascending, distinct
/// @param most at least 1
[[nodiscard]] inline std::vector<std::size_t> even_steps(std::span<const std::int64_t> numbers,
                                                         std::size_t most) {
    const auto count = numbers.size();
    std::vector<std::size_t> kept;
    std::size_t at = 0;
    for (std::size_t step = 0; count > most && step + 1 < most; ++step) {
        const auto first = static_cast<double>(numbers.front()), last = static_cast<double>(numbers.back());
        const auto target =
            first + (last - first) * static_cast<double>(step) / static_cast<double>(most - 1);
        const auto distance = [&](std::size_t i) {
            return std::abs(static_cast<double>(numbers[i]) - target);
        };
        // As many are left behind each as there are steps to come.
        while (at + (most - step) < count && distance(at + 1) < distance(at)) ++at;
        kept.push_back(at++);
    }
    if (count > most)
        kept.push_back(count - 1);
    else
        for (; at < count; ++at) kept.push_back(at);
    return kept;
}

}  // namespace gpusched::consolidation::detail
