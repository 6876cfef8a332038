// SPDX-License-Identifier: Apache-2.0
// UTF-8 validation and text for messages.
#include <gpusched/config.hpp>
#include <gpusched/core/text.hpp>

#include <cstdint>

namespace gpusched {

GPUSCHED_EXPORT std::size_t find_invalid_utf8(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) {
        return i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0u;
    };
    for (std::size_t i = 0; i < text.size();) {
        const auto first = byte(i);
        if (first < 0x80) {
            ++i;
            continue;
        }
        const std::size_t length = first < 0xC2   ? 0
                                   : first < 0xE0 ? 2
                                   : first < 0xF0 ? 3
                                   : first < 0xF5 ? 4
                                                  : 0;
        if (length == 0) return i;
        // The range of the second byte excludes overlong forms, surrogates and values above U+10FFFF.
        const auto low = first == 0xE0 ? 0xA0u : first == 0xF0 ? 0x90u : 0x80u;
        const auto high = first == 0xED ? 0x9Fu : first == 0xF4 ? 0x8Fu : 0xBFu;
        if (byte(i + 1) < low || byte(i + 1) > high) return i;
        for (std::size_t k = 2; k < length; ++k)
            if ((byte(i + k) & 0xC0u) != 0x80u) return i;
        i += length;
    }
    return std::string_view::npos;
}

GPUSCHED_EXPORT std::string printable(std::string_view text, std::size_t limit) {
    static constexpr char hex[] = "0123456789abcdef";
    std::string out;
    std::size_t valid = 0;  // position of the next byte that is not well-formed
    const auto advance = [&](std::size_t from) {
        const auto at = find_invalid_utf8(text.substr(from));
        valid = at == std::string_view::npos ? text.size() : from + at;
    };
    // Keeps four bytes beyond the limit, so that a character across the limit does not look invalid.
    const bool cut = text.size() > limit;
    text = text.substr(0, limit + 4);
    advance(0);
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<std::uint8_t>(text[i]);
        const bool continues = (c & 0xC0u) == 0x80u && i < valid;
        if (cut && i >= limit && !continues) break;
        if (c < 0x20 || c == 0x7F || i == valid) {
            out += {'\\', 'x', hex[c >> 4], hex[c & 15]};
            if (i == valid) advance(i + 1);
        } else {
            out += static_cast<char>(c);
        }
    }
    return cut ? out + "..." : out;
}

GPUSCHED_EXPORT std::string milli_text(std::int64_t milli) {
    auto text = std::to_string(milli / 1000);
    if (milli % 1000 == 0) return text;
    auto rest = std::to_string(1000 + milli % 1000).substr(1);
    while (rest.back() == '0') rest.pop_back();
    return text + "." + rest;
}

GPUSCHED_EXPORT std::string mib_text(std::int64_t mib) {
    constexpr std::int64_t gib = 1024, few = 10 * gib;
    if (mib > 0 && mib % gib == 0) return std::to_string(mib / gib) + " GiB";
    if (mib < few) return std::to_string(mib) + " MiB";
    const auto tenths = (mib % gib * 10 + gib / 2) / gib;  // 10: the next GiB
    return milli_text(mib / gib * 1000 + tenths * 100) + " GiB";
}

}  // namespace gpusched
