// SPDX-License-Identifier: Apache-2.0
// The one header through which tests include Catch2. It hides the differences between version 2.13 (Debian 12)
// and version 3, in favour of the names of version 3:
//
//   Catch::Approx, Catch::Matchers::ContainsSubstring, StartsWith, EndsWith, Message, WithinAbs, WithinRel,
//   Catch::Matchers::MessageMatches, REQUIRE_THROWS_MATCHES, GENERATE, TEMPLATE_TEST_CASE
//
// REQUIRE_THROWS_MESSAGE(expression, type, part) checks an exception's type and a part of its text.
#pragma once

#ifdef GPUSCHED_CATCH2_V2

#include <catch2/catch.hpp>

#include <exception>
#include <string>
#include <utility>

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

/// The expression throws `type`, and the text of the exception contains `part`.
#define REQUIRE_THROWS_MESSAGE(expression, type, part)                                                       \
    REQUIRE_THROWS_MATCHES(expression, type,                                                                 \
                           Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(part)))
#define CHECK_THROWS_MESSAGE(expression, type, part)                                                         \
    CHECK_THROWS_MATCHES(expression, type,                                                                   \
                         Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(part)))
