// Words and numbers of the kernel's text files.
#pragma once

#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace gpusched::host::detail {

/// Takes the next line off a text.
inline std::string_view take_line(std::string_view& text) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return line;
}

/// Between words. Searching for any of them (`find_first_of`) takes a call per character.
constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }

/// Takes the next word off a line; empty at its end.
inline std::string_view take_word(std::string_view& line) {
    std::size_t first = 0;
    while (first < line.size() && is_blank(line[first])) ++first;
    auto end = first;
    while (end < line.size() && !is_blank(line[end])) ++end;
    const auto word = line.substr(first, end - first);
    line.remove_prefix(end);
    return word;
}

/// Whether the whole word is a number.
template <class T>
[[nodiscard]] bool read_number(std::string_view word, T& value) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc{} && end == word.data() + word.size();
}

}  // namespace gpusched::host::detail
