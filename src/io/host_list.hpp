// SPDX-License-Identifier: Apache-2.0
// Lists of hosts as Slurm writes them.
#pragma once

#include <gpusched/core/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail {

/// Most names in the lists of one text.
inline constexpr std::size_t most_hosts = 1'000'000;

/// Limits the expansion of the lists of one text: a few bytes can stand for a million names, and a malformed
/// list can cost as much work before its mistake is found.
struct HostBudget {
    std::size_t names = most_hosts;
    std::size_t bytes = 64 * most_hosts;  ///< of intermediate results, each piece with 8 more
    bool exceeded = false;                ///< a list was abandoned because it stands for more

    /// @return false if the rest is too small
    [[nodiscard]] bool take(std::size_t size) noexcept {
        const bool enough = size + 8 <= bytes;
        bytes -= enough ? size + 8 : bytes;
        exceeded = exceeded || !enough;
        return enough;
    }
};

/// "01-03,7" -> 01 02 03 7; at most `most` of them
inline bool host_numbers(std::string_view text, std::size_t most, HostBudget& left,
                         std::vector<std::string>& out) {
    while (true) {
        const auto comma = std::min(text.find(','), text.size());
        const auto part = text.substr(0, comma);
        const auto dash = std::min(part.find('-'), part.size());
        const auto low = part.substr(0, dash), high = dash == part.size() ? low : part.substr(dash + 1);
        std::uint32_t first = 0, last = 0;
        const auto number = [](std::string_view digits, std::uint32_t& value) {
            return digits.size() <= 9 && read_number(digits, value);
        };
        if (!number(low, first) || !number(high, last) || last < first) return false;
        if (last - first >= most || out.size() + (last - first) >= most) {
            left.exceeded = true;
            return false;
        }
        for (auto value = first; value <= last; ++value) {
            auto digits = std::to_string(value);
            if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
            if (!left.take(digits.size())) return false;
            out.push_back(std::move(digits));
        }
        if (comma == text.size()) return true;
        text.remove_prefix(comma + 1);
    }
}

/// "a,n[01-03,7]x" -> a n01x n02x n03x n7x; numbers keep the width of the range's first one. Several brackets
/// multiply. None if it is malformed or stands for more names than are left (`exceeded`).
[[nodiscard]] inline std::optional<std::vector<std::string>> host_list(std::string_view text,
                                                                       HostBudget& left) {
    std::vector<std::string> out;
    while (true) {
        std::vector<std::string> names{""};
        while (!text.empty() && text.front() != ',') {
            if (text.front() != '[') {
                const auto end = std::min(text.find_first_of(",["), text.size());
                if (text.substr(0, end).find(']') != text.npos) return std::nullopt;
                for (auto& name : names) {
                    if (!left.take(end)) return std::nullopt;
                    name += text.substr(0, end);
                }
                text.remove_prefix(end);
                continue;
            }
            const auto end = text.find(']');
            std::vector<std::string> numbers, longer;
            const auto most = (left.names - out.size()) / names.size();
            if (end == text.npos || !host_numbers(text.substr(1, end - 1), most, left, numbers))
                return std::nullopt;
            for (const auto& name : names)
                for (const auto& number : numbers) {
                    longer.push_back(name + number);
                    if (!left.take(longer.back().size())) return std::nullopt;
                }
            names = std::move(longer);
            text.remove_prefix(end + 1);
        }
        if (names.front().empty()) return std::nullopt;
        if (names.size() > left.names - out.size()) {
            left.exceeded = true;
            return std::nullopt;
        }
        out.insert(out.end(), std::make_move_iterator(names.begin()), std::make_move_iterator(names.end()));
        if (text.empty()) {
            left.names -= out.size();
            return out;
        }
        text.remove_prefix(1);
    }
}

}  // namespace gpusched::io::detail
