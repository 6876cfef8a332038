// SPDX-License-Identifier: Apache-2.0
// GPU entropy: over how many switches a job is spread.
#pragma once

#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpusched::fragmentation {

/// H = -sum p_i ln p_i of the shares p_i = part_i / sum of parts (natural logarithm).
///
/// 0 when at most one part is above 0, ln n for n equal parts. Parts must not be negative. Adds up in the order
/// given; equal inputs give equal bits.
[[nodiscard]] double entropy(std::span<const std::int64_t> parts) noexcept;

/// The GPU entropy of a job (ASI paper, section 4.1): `entropy` of its GPUs per domain of `level`.
///
/// Pending tasks do not count, fractions count as such. A node of unknown position is a domain of its own.
/// @param level of the switches; none = the deepest that is known
/// @throws InvalidInput when `level` is out of range
/// Complexity: O(tasks).
[[nodiscard]] double job_entropy(const Cluster& cluster, JobId job,
                                 std::optional<Level> level = std::nullopt);

/// The same for all jobs at once, by JobId. Complexity: O(tasks log tasks).
[[nodiscard]] std::vector<double> job_entropies(const Cluster& cluster,
                                                std::optional<Level> level = std::nullopt);

}  // namespace gpusched::fragmentation
