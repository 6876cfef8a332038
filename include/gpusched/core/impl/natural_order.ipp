#pragma once

#include <gpusched/core/natural_order.hpp>

#include <algorithm>
#include <cstdint>

namespace GPUSCHED_NAMESPACE {

namespace detail {

/// How many bytes all names begin with, without digits at the end of these: what follows is compared as the names are.
inline std::size_t common_beginning(std::span<const std::string_view> names) {
    if (names.empty()) return 0;
    auto same = names.front();
    for (const auto name : names) {
        const auto end = std::mismatch(same.begin(), same.end(), name.begin(), name.end()).first;
        same = same.substr(0, static_cast<std::size_t>(end - same.begin()));
    }
    while (!same.empty() && is_digit(same.back())) same.remove_suffix(1);
    return same.size();
}

/// Of two texts with different keys, the one with the smaller key comes before the other. A number at the beginning is taken in
/// whole; else the key ends with the first digit.
inline std::uint64_t natural_key(std::string_view text) {
    constexpr auto digit = std::uint64_t{'0'};
    if (!text.empty() && is_digit(text.front())) {
        constexpr auto most = (std::uint64_t{1} << 56) - 1;
        std::size_t at = 0;
        std::uint64_t number = 0;
        for (const char c : next_number(text, at))
            number = std::min(most, 10 * number + static_cast<std::uint64_t>(c - '0'));
        return digit << 56 | number;
    }
    std::uint64_t key = 0;
    for (std::size_t i = 0; i < 8 && i < text.size(); ++i) {
        const int shift = 56 - 8 * static_cast<int>(i);
        if (is_digit(text[i])) return key | digit << shift;
        key |= std::uint64_t{static_cast<unsigned char>(text[i])} << shift;
    }
    return key;
}

}  // namespace detail

GPUSCHED_INLINE std::vector<std::size_t> natural_order(std::span<const std::string_view> names) {
    struct Entry {
        std::uint64_t key;
        std::size_t at;
    };
    const auto same = detail::common_beginning(names);
    std::vector<Entry> entries;
    entries.reserve(names.size());
    for (std::size_t i = 0; i < names.size(); ++i)
        entries.push_back({detail::natural_key(names[i].substr(same)), i});
    std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
        if (a.key != b.key) return a.key < b.key;
        if (names[a.at] != names[b.at]) return comes_before(names[a.at], names[b.at]);
        return a.at < b.at;
    });
    std::vector<std::size_t> order;
    order.reserve(entries.size());
    for (const auto& entry : entries) order.push_back(entry.at);
    return order;
}

}  // namespace GPUSCHED_NAMESPACE
