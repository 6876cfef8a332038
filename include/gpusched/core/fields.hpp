// SPDX-License-Identifier: Apache-2.0
// Fields: the members of a struct by name, with their ranges, described once for every use.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/enum_names.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched {

/// A rule of a field: values from `low` on.
template <class T>
struct AtLeast {
    T low;
};
template <class T>
[[nodiscard]] constexpr AtLeast<T> at_least(T low) noexcept {
    return {low};
}

/// A rule of a field: values above `bound`.
template <class T>
struct MoreThan {
    T bound;
};
template <class T>
[[nodiscard]] constexpr MoreThan<T> more_than(T bound) noexcept {
    return {bound};
}

/// A rule of a field: values above `bound`, up to `most`.
template <class T>
struct MoreThanUpTo {
    T bound, most;
};
template <class T>
[[nodiscard]] constexpr MoreThanUpTo<T> more_than(T bound, T most) noexcept {
    return {bound, most};
}

/// A rule of a field: values from `low` to `high`.
template <class T>
struct Within {
    T low, high;
};
template <class T>
[[nodiscard]] constexpr Within<T> within(T low, T high) noexcept {
    return {low, high};
}

/// The mark of a field that is a described struct: its fields are listed next to the others, not under its
/// name.
struct Inlined {};

/// The mark of a field that a document must have.
struct Required {};

/// The mark of a field that documents omit if it has its default value.
struct UnlessDefault {};

/// The mark of an optional field that documents write as null, instead of omitting it.
struct NullIfAbsent {};

/// The mark of a number, or list of numbers, in which null stands for an unknown value (NaN in memory).
struct NullIfUnknown {};

/// The mark of a text in which null is read as the empty text.
struct NullIsEmpty {};

/// The mark of a list for which a document may have its only element instead.
struct OneOrList {};

/// The mark of a field that exists from `version` of a document format on.
struct Since {
    int version;
};

/// The mark of an integer, or list of integers, that may exceed `value` from `version` of a document format
/// on.
struct NewerAbove {
    std::int64_t value;
    int version;
};

/// The mark of a field that documents omit if the member `flag` is true, from `version` on.
template <class T>
struct LeftOutIf {
    bool T::*flag;
    int version;
};

namespace detail {
struct FieldProbe {
    void operator()(const char*, auto, const auto&...) const {}
};

template <class Mark, class... Rules>
inline constexpr bool has_mark = (std::is_same_v<std::remove_cvref_t<Rules>, Mark> || ...);

template <class Rule>
concept RangeRule = requires(const Rule& rule) { rule.low; } || requires(const Rule& rule) { rule.bound; };
}  // namespace detail

/// A struct with a table of fields. The table is a function `visit_fields` next to the struct, found by
/// argument-dependent lookup. It calls `field(name, &T::member, rules...)` for each member, in their order of
/// declaration:
///
///     struct Options {
///         int depth = 3;                     ///< nesting of moves, 1 .. 16
///         std::optional<double> time_limit;  ///< seconds, >= 0
///     };
///     template <class F>
///     constexpr void visit_fields(std::type_identity<Options>, F&& field) {
///         field("depth", &Options::depth, within(1, 16));
///         field("time_limit", &Options::time_limit, at_least(0.0));
///     }
///
/// The table drives range checks (`check_fields`), JSON documents, hashes, pickles, keyword arguments and
/// stubs in Python, and the options of the console script. A struct with a base visits the fields of the base
/// first.
template <class T>
concept Described = requires { visit_fields(std::type_identity<T>{}, detail::FieldProbe{}); };

namespace detail {

/// Does a single value satisfy a rule? NaN satisfies none.
template <class T, RangeRule Rule>
[[nodiscard]] constexpr bool keeps(const T& value, const Rule& rule) {
    if constexpr (requires { rule.high; })
        return value >= static_cast<T>(rule.low) && value <= static_cast<T>(rule.high);
    else if constexpr (requires { rule.low; })
        return value >= static_cast<T>(rule.low);
    else if constexpr (requires { rule.most; })
        return value > static_cast<T>(rule.bound) && value <= static_cast<T>(rule.most);
    else
        return value > static_cast<T>(rule.bound);
}

/// The rule in words, such as `0 to 16`.
template <RangeRule Rule>
[[nodiscard]] std::string rule_text(const Rule& rule) {
    if constexpr (requires { rule.high; })
        return range_text(rule.low, rule.high);
    else if constexpr (requires { rule.low; })
        return "at least " + number_text(rule.low);
    else if constexpr (requires { rule.most; })
        return "more than " + number_text(rule.bound) + ", at most " + number_text(rule.most);
    else
        return "more than " + number_text(rule.bound);
}

/// The text of an owner: of an object with `text()`, or of a string. Only called if there is a problem.
template <class Owner>
[[nodiscard]] std::string owner_text(const Owner& owner) {
    if constexpr (requires { owner.text(); })
        return owner.text();
    else
        return std::string(owner);
}

template <class T, class Rule, class Owner = std::string_view>
void check_rule(Problems& problems, std::string_view name, const T& value, const Rule& rule,
                const Owner& owner) {
    if constexpr (!RangeRule<Rule>) {
        return;
    } else if constexpr (requires { value.has_value(); }) {
        if (value) check_rule(problems, name, *value, rule, owner);
    } else if constexpr (requires { typename T::value_type; }) {  // a list: the rule of its elements
        for (const auto& element : value) check_rule(problems, name, element, rule, owner);
    } else if (!keeps(value, rule)) {
        problems.add(bad_value(name, number_text(value), rule_text(rule), owner_text(owner)));
    }
}

template <class T, class Rule>
constexpr void narrow(Within<T>& range, const Rule& rule) {
    if constexpr (requires { rule.high; })
        range = {static_cast<T>(rule.low), static_cast<T>(rule.high)};
    else if constexpr (requires { rule.low; })
        range.low = static_cast<T>(rule.low);
    else if constexpr (requires { rule.bound; })
        range.low = static_cast<T>(rule.bound + 1);
}

template <class T, class Owner = std::string_view>
void check_enumerator(Problems& problems, std::string_view name, const T& value, const Owner& owner) {
    if constexpr (NamedEnum<T>) {
        for (const auto& row : enumerators<T>())
            if (row.value == value) return;
        std::string names;
        for (const auto& row : enumerators<T>())
            names.append(names.empty() ? "one of " : ", ").append(row.name);
        problems.add(bad_value(name, std::to_string(static_cast<int>(value)), names, owner_text(owner)));
    } else if constexpr (requires { value.has_value(); }) {
        if (value) check_enumerator(problems, name, *value, owner);
    }
}

}  // namespace detail

/// The values that the rules allow for a field of an integral type; without a rule, all values of the type.
template <std::integral T, class... Rules>
[[nodiscard]] constexpr Within<T> range_of(const Rules&... rules) {
    Within<T> range{std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    (detail::narrow(range, rules), ...);
    return range;
}

/// Checks every field against the rules of its table, and every enumeration against its names. Each violation
/// adds one problem. Includes the fields of inlined structs.
/// @param owner the object's name for messages, or an object with `text()`; empty for options
template <Described T, class Owner = std::string_view>
void check_fields(Problems& problems, const T& object, const Owner& owner = {}) {
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
        const auto& value = object.*member;
        detail::check_enumerator(problems, name, value, owner);
        if constexpr (detail::has_mark<Inlined, decltype(rules)...>)
            check_fields(problems, value, owner);
        else
            (detail::check_rule(problems, name, value, rules, owner), ...);
    });
}

/// @throws InvalidInput with every field that violates a rule of its table
template <Described T>
void require_fields(const T& object) {
    Problems problems;
    check_fields(problems, object);
    problems.throw_if_any();
}

/// Largest amount, time or weight that is accepted. Sums over a million tasks stay far below overflow.
inline constexpr std::int64_t largest_quantity = 1'000'000'000'000;

/// The rule of an amount.
inline constexpr auto any_amount = within<std::int64_t>(0, largest_quantity);

/// The rule of an amount with a sign, such as a priority or a time.
inline constexpr auto any_signed_amount = within<std::int64_t>(-largest_quantity, largest_quantity);

}  // namespace gpusched
