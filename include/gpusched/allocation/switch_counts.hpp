// SPDX-License-Identifier: Apache-2.0
// How many pods of one job go under each switch: the paper's Algorithm 2 as written, and the exact rule.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpusched::allocation {

/// Pods (or GPUs) per switch, in the order of the switches.
using SwitchCounts = std::vector<std::int64_t>;

/// Algorithm 2 of the ASI paper (section 4.1), as written.
///
/// Takes switches one by one. Each gives as many pods as it can hold and the job still needs. The next switch
/// is the one that gives the plan so far the least entropy, with parts relative to the pods placed so far.
/// Entropies within 1e-12 tie; ties go to the lower index. So the first switch with capacity always comes
/// first, and the result is not optimal: capacities {1, 3} give 2 pods as 1 + 1.
///
/// @param capacity pods that each switch can hold, >= 0
/// @param pods how many the job has, >= 0
/// @return nothing if the switches cannot hold the job: all or none
/// @throws InvalidInput for negative numbers and sums of capacities of 2^62 or more
/// O(switches x switches used). Deterministic.
[[nodiscard]] std::optional<SwitchCounts> entropy_greedy(std::span<const std::int64_t> capacity,
                                                         std::int64_t pods);

/// Returns the spread of least entropy over the switches.
///
/// Takes the largest capacity first: the sum of its k largest parts is as large as any spread allows for
/// every k. So it majorises all of them, and entropy is Schur-concave. The remainder for the last switch goes
/// to the tightest unused one that can hold it, which has the same entropy and leaves the largest block free.
/// Ties go to the lower index. Arguments, result and errors as for `entropy_greedy`.
///
/// O(switches + switches used x log switches); no logarithm is computed.
[[nodiscard]] std::optional<SwitchCounts> least_entropy(std::span<const std::int64_t> capacity,
                                                        std::int64_t pods);

/// The same, but ties between spreads of least entropy are first broken by the entropy at further levels.
///
/// Switches of equal capacity are interchangeable, and any of them can take the remainder. This finds the
/// choice of least entropy over the groups of the first further level, among those of the second, and so on,
/// then the tightest switch for the remainder. Exact up to differences in entropy of 1e-6 / pods.
///
/// @param groups per further level the group of every switch (dense numbers from 0), in order of importance;
///     groups of different levels are nested, in any order of the levels
/// @throws InvalidInput also if a level has another number of switches, groups overlap, or there are more
///     than 2^31 pods
/// O(levels x switches + pairs of counts in a tree knapsack): quadratic in the switches of equal capacity at
/// worst.
[[nodiscard]] std::optional<SwitchCounts> least_entropy(std::span<const std::int64_t> capacity,
                                                        std::int64_t pods,
                                                        std::span<const std::vector<std::uint32_t>> groups);

}  // namespace gpusched::allocation
