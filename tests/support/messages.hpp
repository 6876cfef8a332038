// SPDX-License-Identifier: Apache-2.0
// Compares messages by what they name, not by their wording.
//
// mentions("max_moves: -1; expected at least 0", "max_moves -1 0") is true: the message names the field, the value and
// what is allowed. Words are separated by spaces and may stand in any order.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace testing_support {

/// `text` contains `word`, and no letter, digit or underscore continues it on either side.
inline bool mentions_word(std::string_view text, std::string_view word) {
    const auto part_of_a_name = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
        const auto end = at + word.size();
        const bool begins = at == 0 || !part_of_a_name(word.front()) || !part_of_a_name(text[at - 1]);
        const bool ends = end == text.size() || !part_of_a_name(word.back()) || !part_of_a_name(text[end]);
        if (begins && ends) return true;
    }
    return false;
}

/// `text` contains every one of the words.
inline bool mentions(std::string_view text, std::string_view words) {
    while (!words.empty()) {
        const auto word = words.substr(0, words.find(' '));
        if (!word.empty() && !mentions_word(text, word)) return false;
        words.remove_prefix(word.size() == words.size() ? word.size() : word.size() + 1);
    }
    return true;
}

/// There are as many messages as entries of `words`, and each message contains the words of its entry.
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
