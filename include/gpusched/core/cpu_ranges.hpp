// SPDX-License-Identifier: Apache-2.0
// CpuRanges: sets of logical CPUs (or NUMA nodes), as the kernel and the tools of GPU vendors write them.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched {

/// Largest number of a logical CPU that is read.
inline constexpr int largest_cpu = 65535;

/// Logical CPUs as ascending ranges (both ends included) with gaps between them.
struct CpuRanges {
    std::vector<std::pair<int, int>> ranges{};
    bool operator==(const CpuRanges&) const = default;
    [[nodiscard]] bool empty() const noexcept { return ranges.empty(); }
    [[nodiscard]] int count() const noexcept;
    [[nodiscard]] bool meets(const CpuRanges& other) const noexcept;
    /// Takes more ranges in, in any order: O(n log n) in all of them, so those of one text at once.
    void add(const std::vector<std::pair<int, int>>& more);
};

/// Reads a list as in `cpuset.cpus`: "0-31,64-95", in any order; the empty text is the empty set. Blanks around the list
/// and an end of line are ignored.
/// @return nothing when it is no such list, has a number above `largest_cpu` or more than 4096 parts
[[nodiscard]] std::optional<CpuRanges> parse_cpu_list(std::string_view text);

/// Reads a mask as in `/proc/irq/*/smp_affinity`: words of 32 bits in hexadecimal digits, the most significant first,
/// between commas, with or without 0x; an empty word is 0.
/// @return nothing when it is no such mask, or names a CPU above `largest_cpu`
[[nodiscard]] std::optional<CpuRanges> parse_cpu_mask(std::string_view text);

}  // namespace gpusched
