// Words and numbers of the kernel's text files.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace gpusched::control::detail {

/// Takes the next line off a text.
inline std::string_view take_line(std::string_view& text) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return line;
}

/// Takes the next word off a line; empty at its end.
inline std::string_view take_word(std::string_view& line) {
    const auto first = line.find_first_not_of(" \t\r");
    line.remove_prefix(first == std::string_view::npos ? line.size() : first);
    const auto end = line.find_first_of(" \t\r");
    const auto word = line.substr(0, end);
    line.remove_prefix(word.size());
    return word;
}

/// Whether the whole word is a number.
template <class T>
[[nodiscard]] bool read_number(std::string_view word, T& value) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc{} && end == word.data() + word.size();
}

}  // namespace gpusched::control::detail
