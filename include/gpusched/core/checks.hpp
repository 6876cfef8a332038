// SPDX-License-Identifier: Apache-2.0
// Checks of options and data against their ranges, with messages of one form: `depth: 0; expected 1 to 16`.
#pragma once

#include <gpusched/core/errors.hpp>

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace gpusched {

/// A number for messages: all digits of an integer, up to six significant digits otherwise.
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

/// The message about a bad value: `[owner: ]field: value; expected expectation`.
[[nodiscard]] inline std::string bad_value(std::string_view field, std::string_view value,
                                           std::string_view expectation, std::string_view owner = {}) {
    std::string text;
    if (!owner.empty()) text.append(owner).append(": ");
    return text.append(field).append(": ").append(value).append("; expected ").append(expectation);
}

/// A range for messages. The limits of a floating-point type are not limits of the field: they read "a finite
/// number".
template <class T>
[[nodiscard]] std::string range_text(T low, T high) {
    if constexpr (std::floating_point<T>)
        if (high == std::numeric_limits<T>::max())
            return low == std::numeric_limits<T>::min() ? "a finite number above 0"
                                                        : "a finite number of at least " + number_text(low);
    return number_text(low) + " to " + number_text(high);
}

/// Adds a problem unless `low <= value <= high`. NaN is out of every range.
/// @param owner the object that has the field, such as a node; empty for options
/// @return true if the value is in range
template <class T>
bool check_range(Problems& problems, std::string_view field, T value, std::type_identity_t<T> low,
                 std::type_identity_t<T> high, std::string_view owner = {}) {
    if (value >= low && value <= high) return true;
    problems.add(bad_value(field, number_text(value), range_text<T>(low, high), owner));
    return false;
}

/// The same without an upper limit.
template <class T>
bool check_at_least(Problems& problems, std::string_view field, T value, std::type_identity_t<T> low,
                    std::string_view owner = {}) {
    if (value >= low) return true;
    problems.add(bad_value(field, number_text(value), "at least " + number_text(low), owner));
    return false;
}

/// Checks a single value. @throws InvalidInput unless `low <= value <= high`
template <class T>
void require_range(std::string_view field, T value, std::type_identity_t<T> low,
                   std::type_identity_t<T> high) {
    Problems problems;
    check_range(problems, field, value, low, high);
    problems.throw_if_any();
}

/// Adds a problem unless a list has the expected number of entries.
/// @param each  the end of the expectation, such as `, one per node`
/// @return true if the number is right
inline bool check_size(Problems& problems, std::string_view field, std::size_t size, std::size_t expected,
                       std::string_view each = {}, std::string_view owner = {}) {
    if (size == expected) return true;
    problems.add(bad_value(field, number_text(size) + " entries", number_text(expected).append(each), owner));
    return false;
}

/// @throws InvalidInput unless a list has the expected number of entries
inline void require_size(std::string_view field, std::size_t size, std::size_t expected) {
    if (size != expected)
        throw InvalidInput(
            bad_value("entries of " + std::string(field), number_text(size), number_text(expected)));
}

/// Similarity of other names to a given one, from 0 to 1: the share of both names that their longest common
/// subsequence covers. Ignores case and treats `-` as `_`. Only the last 64 characters of a name count.
///
/// Complexity: O(length) per name (Hyyrö: Bit-parallel LCS-length computation revisited, 2004).
class NameLikeness {
  public:
    explicit NameLikeness(std::string_view name) : size_(tail(name).size()) {
        std::uint64_t bit = 1;
        for (const char c : tail(name)) where_[folded(c)] |= bit, bit <<= 1;
    }
    [[nodiscard]] double operator()(std::string_view other) const {
        other = tail(other);
        std::uint64_t unmatched = ~std::uint64_t{0};
        for (const char c : other) {
            const auto matched = unmatched & where_[folded(c)];
            unmatched = (unmatched + matched) | (unmatched - matched);
        }
        if (size_ < 64) unmatched |= ~std::uint64_t{0} << size_;
        const auto total = size_ + other.size();
        return total == 0 ? 1.0 : 2.0 * std::popcount(~unmatched) / static_cast<double>(total);
    }

  private:
    static std::string_view tail(std::string_view name) {
        return name.substr(name.size() > 64 ? name.size() - 64 : 0);
    }
    static std::uint8_t folded(char c) {
        if (c >= 'A' && c <= 'Z') return static_cast<std::uint8_t>(c - 'A' + 'a');
        return static_cast<std::uint8_t>(c == '-' ? '_' : c);
    }
    std::size_t size_;
    std::array<std::uint64_t, 256> where_{};  // the positions of every letter in the name
};

/// The end of a message about an unknown name, such as `; did you mean 'best' or 'fast'?`. Lists up to three
/// names with a similarity of at least 0.6, the nearest first. Empty if there is none.
/// @param known names with `size()` and `[]`, such as a `NameTable` or a vector of strings
template <class Names>
[[nodiscard]] std::string did_you_mean(std::string_view name, const Names& known) {
    constexpr double near = 0.6;
    const NameLikeness likeness(name);
    std::array<double, 3> best{};
    std::array<std::size_t, 3> at{};
    std::size_t found = 0;
    for (std::size_t i = 0; i < known.size(); ++i) {
        const auto value = likeness(known[i]);
        if (value < near || (found == best.size() && value <= best.back())) continue;
        std::size_t place = found < best.size() ? found++ : found - 1;
        for (; place > 0 && value > best[place - 1]; --place) {
            best[place] = best[place - 1];
            at[place] = at[place - 1];
        }
        best[place] = value;
        at[place] = i;
    }
    std::string text;
    for (std::size_t i = 0; i < found; ++i) {
        text += i == 0 ? "; did you mean " : i + 1 == found ? " or " : ", ";
        text.append("'").append(known[at[i]]).append("'");
    }
    return text.empty() ? text : text + "?";
}

/// The message about an unknown name: `unknown node 'n0l'; did you mean 'n01'?`
/// @param known as for `did_you_mean`
template <class Names>
[[nodiscard]] std::string unknown_name(std::string_view kind, std::string_view name, const Names& known) {
    return "unknown " + std::string(kind) + " " + gpusched::quoted(name) + did_you_mean(name, known);
}

/// The message about a name that is not in a short list:
/// `ranker: 'pack'; expected one of packing, random; did you mean 'packing'?`
/// @param known as for `did_you_mean`
template <class Names>
[[nodiscard]] std::string bad_name(std::string_view field, std::string_view name, const Names& known) {
    std::string expected;
    for (std::size_t i = 0; i < known.size(); ++i)
        expected.append(i == 0 ? "one of " : ", ").append(known[i]);
    return bad_value(field, gpusched::quoted(name), expected) + did_you_mean(name, known);
}

}  // namespace gpusched
