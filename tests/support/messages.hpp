// SPDX-License-Identifier: Apache-2.0
// Compares messages by the words that they contain in a given order.
//
// mentions("max_moves: -1; expected at least 0", "max_moves: -1; 0") is true: the message names the field, then the
// value, then what is allowed. Words are separated by spaces; other words may stand between them.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace testing_support {

/// The end of the first `word` in `text` at or after `from`; npos if there is none. No letter, digit or underscore
/// continues the word on either side, and the number 1 is not found in -1 or 1.5.
inline std::size_t find_word(std::string_view text, std::string_view word, std::size_t from) {
    const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    const auto is_joined = [](char left, char right) {
        const auto part_of_a_name = [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
        };
        return part_of_a_name(left) && part_of_a_name(right);
    };
    for (auto at = text.find(word, from); at != text.npos; at = text.find(word, at + 1)) {
        const auto before = text.substr(0, at), after = text.substr(at + word.size());
        if (!before.empty() && is_joined(before.back(), word.front())) continue;
        if (!after.empty() && is_joined(word.back(), after.front())) continue;
        if (is_digit(word.front()) && (before.ends_with('-') || before.ends_with('.'))) continue;
        if (is_digit(word.back()) && after.starts_with('.') && after.size() > 1 && is_digit(after[1]))
            continue;
        return at + word.size();
    }
    return text.npos;
}

/// `text` contains the words, in this order.
inline bool mentions(std::string_view text, std::string_view words) {
    for (std::size_t from = 0; !words.empty();) {
        const auto word = words.substr(0, words.find(' '));
        words.remove_prefix(std::min(word.size() + 1, words.size()));
        if (word.empty()) continue;
        from = find_word(text, word, from);
        if (from == text.npos) return false;
    }
    return true;
}

/// There are as many messages as entries of `words`, and each message contains the words of its entry, in order.
inline bool mention(const std::vector<std::string>& messages, const std::vector<std::string>& words) {
    if (messages.size() != words.size()) return false;
    for (std::size_t i = 0; i < words.size(); ++i)
        if (!mentions(messages[i], words[i])) return false;
    return true;
}

/// The problems of the `Error` that the call throws; none if it returns.
template <typename Error, typename Call>
std::vector<std::string> problems_in(const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.problems();
    }
    return {};
}

}  // namespace testing_support
