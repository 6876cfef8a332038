// SPDX-License-Identifier: Apache-2.0
// Parsing of text (numbers, words, lines) and its safe display in messages.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace gpusched {

/// Reads a number; true if the complete text is a number. Independent of the locale; no blanks, no leading
/// plus sign.
template <std::integral T>
[[nodiscard]] bool read_number(std::string_view text, T& value, int base = 10) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return error == std::errc{} && end == text.data() + text.size();
}
template <std::floating_point T>
[[nodiscard]] bool read_number(std::string_view text, T& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size();
}

/// Removes a number with its sign from the start of `text`; false if there is none, or if it does not fit
/// into T.
template <class T>
    requires std::is_arithmetic_v<T>
[[nodiscard]] bool take_number(std::string_view& text, T& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

/// A separator of words. Faster than `find_first_of`, which makes a call per character.
[[nodiscard]] constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }

/// The text without blanks at its ends.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) noexcept {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
}

/// Removes the part before the first `separator` from a text, and the separator. Without a separator, removes
/// all.
[[nodiscard]] constexpr std::string_view take_until(std::string_view& text, char separator) noexcept {
    const auto end = text.find(separator);
    const auto part = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return part;
}

/// Removes the next line from a text.
[[nodiscard]] constexpr std::string_view take_line(std::string_view& text) noexcept {
    return take_until(text, '\n');
}

/// Removes the next word from a line; empty at its end.
[[nodiscard]] constexpr std::string_view take_word(std::string_view& line) noexcept {
    std::size_t first = 0;
    while (first < line.size() && is_blank(line[first])) ++first;
    auto end = first;
    while (end < line.size() && !is_blank(line[end])) ++end;
    const auto word = line.substr(first, end - first);
    line.remove_prefix(end);
    return word;
}

/// The digits at the end of a name.
[[nodiscard]] constexpr std::string_view trailing_digits(std::string_view name) noexcept {
    auto first = name.size();
    while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') --first;
    return name.substr(first);
}

/// Joins texts, integers, and objects with `text()`, such as the parts of a message.
template <class... Parts>
[[nodiscard]] std::string concat(const Parts&... parts) {
    std::string joined;
    const auto add = [&](const auto& part) {
        if constexpr (std::integral<std::remove_cvref_t<decltype(part)>>)
            joined += std::to_string(part);
        else if constexpr (requires { part.text(); })
            joined += part.text();
        else
            joined += part;
    };
    (add(parts), ...);
    return joined;
}

/// Position of the first byte that is not part of well-formed UTF-8 (RFC 3629); npos if there is none.
[[nodiscard]] std::size_t find_invalid_utf8(std::string_view text) noexcept;

/// `text` for use in a message: control characters and invalid UTF-8 become \xNN; the part beyond `limit`
/// bytes becomes "...".
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = 80);

/// Thousandths of a core or of a GPU as a number: "12.5" for 12,500.
[[nodiscard]] std::string milli_text(std::int64_t milli);

/// Memory with its unit: "512 GiB", "97.7 GiB", "300 MiB".
[[nodiscard]] std::string mib_text(std::int64_t mib);

}  // namespace gpusched
