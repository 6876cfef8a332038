// SPDX-License-Identifier: Apache-2.0
// Natural order of many names.
#include <gpusched/config.hpp>
#include <gpusched/core/order.hpp>

#include <algorithm>
#include <cstdint>

namespace gpusched {

namespace detail {

struct NaturalEntry {
    std::string_view name;
    std::uint64_t key;
    std::size_t at;  // in the list
};

/// Length of the common prefix of all names, without digits at its end, so that the rest compares like the
/// names.
static std::size_t common_prefix(std::span<const NaturalEntry> entries) {
    auto same = entries.front().name;
    for (const auto& entry : entries) {
        const auto end = std::mismatch(same.begin(), same.end(), entry.name.begin(), entry.name.end()).first;
        same = same.substr(0, static_cast<std::size_t>(end - same.begin()));
    }
    while (!same.empty() && is_digit(same.back())) same.remove_suffix(1);
    return same.size();
}

/// A key of a text: if the keys of two texts differ, their order is the order of the texts. A number at the
/// start is complete in the key; otherwise the key ends with the first digit.
static std::uint64_t natural_key(std::string_view text) {
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

/// Sorts by the key of the text after the common prefix. Entries with equal keys have a longer common prefix
/// and are sorted again; if their prefix is not longer, they are compared.
/// @param known_prefix common prefix of the caller's entries; npos at the start
static void sort_naturally(std::span<NaturalEntry> entries,
                           std::size_t known_prefix = std::string_view::npos) {
    constexpr std::size_t few = 4;
    const auto prefix = entries.size() > few ? common_prefix(entries) : known_prefix;
    if (prefix == known_prefix) {
        std::sort(entries.begin(), entries.end(), [](const NaturalEntry& a, const NaturalEntry& b) {
            return a.name == b.name ? a.at < b.at : comes_before(a.name, b.name);
        });
        return;
    }
    for (auto& entry : entries) entry.key = natural_key(entry.name.substr(prefix));
    std::sort(entries.begin(), entries.end(),
              [](const NaturalEntry& a, const NaturalEntry& b) { return a.key < b.key; });
    for (auto first = entries.begin(); first != entries.end();) {
        const auto end =
            std::find_if(first, entries.end(), [&](const auto& e) { return e.key != first->key; });
        if (end - first > 1) sort_naturally({first, end}, prefix);
        first = end;
    }
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<std::size_t> natural_order(std::span<const std::string_view> names) {
    std::vector<detail::NaturalEntry> entries;
    entries.reserve(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) entries.push_back({names[i], 0, i});
    detail::sort_naturally(entries);
    std::vector<std::size_t> order;
    order.reserve(entries.size());
    for (const auto& entry : entries) order.push_back(entry.at);
    return order;
}

}  // namespace gpusched
