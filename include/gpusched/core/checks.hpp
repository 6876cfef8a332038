// SPDX-License-Identifier: Apache-2.0
// Checks: values of options and data against their ranges, in one form of words: `depth: 0; expected 1 to 16`.
#pragma once

#include <gpusched/core/errors.hpp>

#include <concepts>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace gpusched {

/// A number as it appears in messages: integers in full, others with up to six significant digits.
template <class T>
    requires std::integral<T> || std::floating_point<T>
[[nodiscard]] std::string number_text(T value) {
    if constexpr (std::integral<T>) {
        return std::to_string(value);
    } else {
        char text[32];
        std::snprintf(text, sizeof text, "%g", static_cast<double>(value));
        return text;
    }
}

/// What is said of a bad value: `[owner: ]field: value; expected expectation`.
[[nodiscard]] inline std::string bad_value(std::string_view field, std::string_view value,
                                           std::string_view expectation, std::string_view owner = {}) {
    std::string text;
    if (!owner.empty()) text.append(owner).append(": ");
    return text.append(field).append(": ").append(value).append("; expected ").append(expectation);
}

/// A range as it appears in messages. The ends of what a floating-point type holds are no limits that anybody set: they appear as
/// "a finite number".
template <class T>
[[nodiscard]] std::string range_text(T low, T high) {
    if constexpr (std::floating_point<T>)
        if (high == std::numeric_limits<T>::max())
            return low == std::numeric_limits<T>::min() ? "a finite number above 0"
                                                        : "a finite number of at least " + number_text(low);
    return number_text(low) + " to " + number_text(high);
}

/// Adds a problem unless `low <= value <= high`. NaN is out of every range.
/// @param owner what the field belongs to, such as a node; empty for options
/// @return true if the value is in range
template <class T>
bool check_range(Problems& problems, std::string_view field, T value, std::type_identity_t<T> low,
                 std::type_identity_t<T> high, std::string_view owner = {}) {
    if (value >= low && value <= high) return true;
    problems.add(bad_value(field, number_text(value), range_text<T>(low, high), owner));
    return false;
}

/// The same with no upper end.
template <class T>
bool check_at_least(Problems& problems, std::string_view field, T value, std::type_identity_t<T> low,
                    std::string_view owner = {}) {
    if (value >= low) return true;
    problems.add(bad_value(field, number_text(value), "at least " + number_text(low), owner));
    return false;
}

/// For a single value: @throws InvalidInput unless `low <= value <= high`
template <class T>
void require_range(std::string_view field, T value, std::type_identity_t<T> low,
                   std::type_identity_t<T> high) {
    Problems problems;
    check_range(problems, field, value, low, high);
    problems.throw_if_any();
}

}  // namespace gpusched
