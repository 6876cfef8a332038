// SPDX-License-Identifier: Apache-2.0
// Orders: indices sorted by a key, and names in natural order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched {

/// The indices 0 .. count - 1 by ascending (key(index), index). Calls `key` O(count log count) times.
template <class Key>
[[nodiscard]] std::vector<std::size_t> order_by(std::size_t count, Key&& key) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::pair<decltype(key(a)), std::size_t>(key(a), a) <
               std::pair<decltype(key(b)), std::size_t>(key(b), b);
    });
    return order;
}

namespace detail {

[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// The digits of `text` from position `at` on, without leading zeros. Moves `at` behind them.
[[nodiscard]] constexpr std::string_view next_number(std::string_view text, std::size_t& at) noexcept {
    while (at < text.size() && text[at] == '0') ++at;
    const auto first = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return text.substr(first, at - first);
}

}  // namespace detail

/// Does `a` come before `b` in natural order? Runs of digits compare as numbers of any length ("n2" before
/// "n10"), all other characters as bytes. Names that differ only in leading zeros compare as text, so
/// different names never tie.
[[nodiscard]] constexpr bool comes_before(std::string_view a, std::string_view b) noexcept {
    std::size_t same = 0;  // length of the common prefix: most names have one
    while (same < a.size() && same < b.size() && a[same] == b[same]) ++same;
    while (same > 0 && detail::is_digit(a[same - 1])) --same;  // back to the first digit of a number
    std::size_t i = same, j = same;
    while (i < a.size() && j < b.size()) {
        if (detail::is_digit(a[i]) && detail::is_digit(b[j])) {
            const auto x = detail::next_number(a, i), y = detail::next_number(b, j);
            if (x.size() != y.size()) return x.size() < y.size();
            if (const auto order = x.compare(y); order != 0) return order < 0;
        } else {
            if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
            ++i;
            ++j;
        }
    }
    if (i < a.size() || j < b.size()) return i == a.size();
    return a < b;
}

/// The indices of `names` in natural order; equal names keep their order. Faster than a sort by
/// `comes_before`, because it reads the numbers in names once.
[[nodiscard]] std::vector<std::size_t> natural_order(std::span<const std::string_view> names);

}  // namespace gpusched
