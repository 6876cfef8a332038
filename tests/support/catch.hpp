// SPDX-License-Identifier: Apache-2.0
// What every test includes: Catch2 and the usual headers of the standard library. It hides the differences between version
// 2.13 of Catch2 (Debian 12) and version 3, in favour of the names of version 3:
//
//   Catch::Approx, Catch::Matchers::ContainsSubstring, StartsWith, EndsWith, Message, WithinAbs, WithinRel,
//   Catch::Matchers::MessageMatches, REQUIRE_THROWS_MATCHES, GENERATE, TEMPLATE_TEST_CASE
//
// REQUIRE_THROWS_MESSAGE(expression, type, words) checks the type of an exception and that its text contains
// the words in this order (messages.hpp), for example the field, the value and the range: "max_moves: -1; 0".
#pragma once

#include "messages.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#ifdef GPUSCHED_CATCH2_V2

#include <catch2/catch.hpp>

namespace Catch {
/// Version 2 keeps it in a namespace of its own.
using Detail::Approx;
}  // namespace Catch

namespace Catch::Matchers {

/// Version 3's name of what version 2 calls Contains.
inline auto ContainsSubstring(const std::string& part, CaseSensitive::Choice choice = CaseSensitive::Yes) {
    return Contains(part, choice);
}

/// Version 3's matcher on the text of an exception.
template <typename StringMatcher>
class ExceptionMessageMatches : public MatcherBase<std::exception> {
  public:
    explicit ExceptionMessageMatches(StringMatcher matcher) : matcher_(std::move(matcher)) {}
    bool match(const std::exception& error) const override {
        return matcher_.match(std::string(error.what()));
    }
    std::string describe() const override { return "matching message: " + matcher_.toString(); }

  private:
    StringMatcher matcher_;
};

template <typename StringMatcher>
ExceptionMessageMatches<StringMatcher> MessageMatches(StringMatcher matcher) {
    return ExceptionMessageMatches<StringMatcher>(std::move(matcher));
}

}  // namespace Catch::Matchers

#else

#include <catch2/catch_all.hpp>

#endif

namespace Catch::Matchers {

/// Matches a text that contains the words in this order.
class Mentions : public MatcherBase<std::string> {
  public:
    explicit Mentions(std::string words) : words_(std::move(words)) {}
    bool match(const std::string& text) const override { return testing_support::mentions(text, words_); }
    std::string describe() const override { return "mentions: " + words_; }

  private:
    std::string words_;
};

/// Matches a list of texts: the i-th contains the words of the i-th entry in order, and there are as many.
class MentionsEach : public MatcherBase<std::vector<std::string>> {
  public:
    explicit MentionsEach(std::vector<std::string> words) : words_(std::move(words)) {}
    bool match(const std::vector<std::string>& texts) const override {
        return testing_support::mention(texts, words_);
    }
    std::string describe() const override { return "mention: " + ::Catch::Detail::stringify(words_); }

  private:
    std::vector<std::string> words_;
};

}  // namespace Catch::Matchers

using Catch::Matchers::Mentions;
using Catch::Matchers::MentionsEach;

/// The expression throws `type`, and the text of the exception mentions the words.
#define REQUIRE_THROWS_MESSAGE(expression, type, words)                                                      \
    REQUIRE_THROWS_MATCHES(expression, type, Catch::Matchers::MessageMatches(Mentions(words)))
#define CHECK_THROWS_MESSAGE(expression, type, words)                                                        \
    CHECK_THROWS_MATCHES(expression, type, Catch::Matchers::MessageMatches(Mentions(words)))
