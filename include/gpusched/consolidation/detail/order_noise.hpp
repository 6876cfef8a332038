// SPDX-License-Identifier: Apache-2.0
// Noise in the order in which the nodes of a group are tried.
#pragma once

#include <gpusched/core/ids.hpp>
#include <gpusched/core/rng.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::consolidation::detail {

/// A node with its key; nodes are tried in ascending order.
using NodeKey = std::pair<std::int64_t, NodeId>;

/// Orders sorted nodes anew by keys that grow by up to a half, equal ones at random. Keys are measured from 0, or from the
/// lowest where that is negative; those beyond 2^58 count as equal.
inline void add_noise(std::vector<NodeKey>& sorted, std::uint64_t seed) {
    if (sorted.empty()) return;
    const Rng rng(seed);
    const auto lowest = static_cast<std::uint64_t>(std::min<std::int64_t>(0, sorted.front().first));
    std::vector<std::tuple<std::uint64_t, std::uint64_t, NodeKey>> noisy;
    noisy.reserve(sorted.size());
    for (const auto& entry : sorted) {
        auto random = rng.split(index(entry.second));
        const auto key = std::min(static_cast<std::uint64_t>(entry.first) - lowest, std::uint64_t{1} << 58);
        const auto grown = key * (16 + random.below(9));
        noisy.emplace_back(grown, random(), entry);
    }
    std::sort(noisy.begin(), noisy.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] = std::get<NodeKey>(noisy[i]);
}

}  // namespace gpusched::consolidation::detail
