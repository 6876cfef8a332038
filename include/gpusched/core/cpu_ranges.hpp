// SPDX-License-Identifier: Apache-2.0
// CpuRanges: sets of logical CPUs or NUMA nodes, in the notation of the kernel and of the GPU vendors' tools.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched {

/// Largest accepted number of a logical CPU.
inline constexpr int largest_cpu = 65535;

/// Logical CPUs as ascending ranges, both ends included, with gaps between them.
struct CpuRanges {
    std::vector<std::pair<int, int>> ranges{};
    bool operator==(const CpuRanges&) const = default;
    [[nodiscard]] bool empty() const noexcept { return ranges.empty(); }
    [[nodiscard]] int count() const noexcept;
    [[nodiscard]] bool meets(const CpuRanges& other) const noexcept;
    /// Adds ranges in any order. O(n log n) in the number of all ranges, so add many at once.
    void add(const std::vector<std::pair<int, int>>& more);
};

/// Reads a list as in `cpuset.cpus`, such as "0-31,64-95", in any order. An empty text is the empty set.
/// Ignores blanks around the list and a final end of line.
/// @return nothing if the text is not a list, has a number above `largest_cpu`, or more than 4096 parts
[[nodiscard]] std::optional<CpuRanges> parse_cpu_list(std::string_view text);

/// Reads a mask as in `/proc/irq/*/smp_affinity`: 32-bit words in hexadecimal digits, separated by commas,
/// the most significant first, with or without 0x. An empty word is 0.
/// @return nothing if the text is not a mask, or contains a CPU above `largest_cpu`
[[nodiscard]] std::optional<CpuRanges> parse_cpu_mask(std::string_view text);

}  // namespace gpusched
