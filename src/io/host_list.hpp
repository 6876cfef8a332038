// SPDX-License-Identifier: Apache-2.0
// Lists of hosts as Slurm writes them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::io::detail {

/// Most names that the lists of one text may stand for.
inline constexpr std::size_t most_hosts = 1'000'000;

/// What the lists of one text may still be expanded to: a few bytes can stand for a million names, and for as much work
/// again before a list turns out to be wrong.
struct HostBudget {
    std::size_t names = most_hosts;
    std::size_t bytes = 64 * most_hosts;  ///< written on the way there, each piece with 8 more
    bool exceeded = false;                ///< a list was given up because it stands for more

    /// @return false when nothing of it is left for these
    [[nodiscard]] bool take(std::size_t size) noexcept {
        const bool enough = size + 8 <= bytes;
        bytes -= enough ? size + 8 : bytes;
        exceeded = exceeded || !enough;
        return enough;
    }
};

/// "a,n[01-03,7]x" -> a n01x n02x n03x n7x; numbers keep the width of the range's first one. Several brackets multiply.
/// None when it is no such list or stands for more names than are left (`exceeded`); then it was expanded no further
/// than that.
[[nodiscard]] std::optional<std::vector<std::string>> host_list(std::string_view text, HostBudget& left);

}  // namespace gpusched::io::detail
