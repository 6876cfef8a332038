// SPDX-License-Identifier: Apache-2.0
// GPU entropy: measures how far a job is spread over switches.
#pragma once

#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpusched::fragmentation {

/// Returns H = -sum p_i ln p_i of the shares p_i = part_i / sum of parts (natural logarithm).
///
/// The result is 0 if at most one part is above 0, and ln n for n equal parts. Parts must not be negative.
/// They are added in the given order, so equal inputs give identical bits.
[[nodiscard]] double entropy(std::span<const std::int64_t> parts) noexcept;

/// Returns the GPU entropy of a job (ASI paper, section 4.1): the `entropy` of its GPUs per domain of
/// `level`.
///
/// Pending tasks do not count. Fractions of GPUs count as fractions. A node of unknown position is its own
/// domain.
/// @param level the level of the switches; none = the deepest known level
/// @throws InvalidInput if `level` is out of range
///
/// O(tasks).
[[nodiscard]] double job_entropy(const Cluster& cluster, JobId job,
                                 std::optional<Level> level = std::nullopt);

/// Returns `job_entropy` of all jobs, by JobId. O(tasks log tasks).
[[nodiscard]] std::vector<double> job_entropies(const Cluster& cluster,
                                                std::optional<Level> level = std::nullopt);

}  // namespace gpusched::fragmentation
