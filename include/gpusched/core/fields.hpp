// Fields: the members of a struct by name, with their ranges, described once for every use.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/enum_names.hpp>

#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace GPUSCHED_NAMESPACE {

/// The rule of a field: no value below `low`.
template <class T>
struct AtLeast {
    T low;
};
template <class T>
[[nodiscard]] constexpr AtLeast<T> at_least(T low) noexcept {
    return {low};
}

/// The rule of a field: every value above `bound`.
template <class T>
struct MoreThan {
    T bound;
};
template <class T>
[[nodiscard]] constexpr MoreThan<T> more_than(T bound) noexcept {
    return {bound};
}

/// The rule of a field: every value above `bound`, up to `most`.
template <class T>
struct MoreThanUpTo {
    T bound, most;
};
template <class T>
[[nodiscard]] constexpr MoreThanUpTo<T> more_than(T bound, T most) noexcept {
    return {bound, most};
}

/// The rule of a field: values from `low` to `high`.
template <class T>
struct Within {
    T low, high;
};
template <class T>
[[nodiscard]] constexpr Within<T> within(T low, T high) noexcept {
    return {low, high};
}

/// The mark of a field that is a struct with a table of its own: its fields stand beside the others, not under its name.
struct Inlined {};

/// The mark of a field without which a document is an error.
struct Required {};

/// The mark of a field that documents leave out while it has its default value.
struct UnlessDefault {};

namespace detail {
struct FieldProbe {
    void operator()(const char*, auto, const auto&...) const {}
};
}  // namespace detail

/// A struct with a table of fields: a function `visit_fields` beside it, found by argument-dependent lookup, which calls
/// `field(name, &T::member, rules...)` for each member in the order in which the members are written:
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
/// The table drives range checks (`check_fields`), JSON documents, hashes, pickles, Python's keyword arguments with their
/// documentation and stubs, and the options of the console script. A struct with a base visits the fields of the base first.
template <class T>
concept Described = requires { visit_fields(std::type_identity<T>{}, detail::FieldProbe{}); };

namespace detail {

template <class T, class Rule>
void check_rule(Problems& problems, std::string_view name, const T& value, const Rule& rule,
                std::string_view owner) {
    if constexpr (requires { value.has_value(); }) {
        if (value) check_rule(problems, name, *value, rule, owner);
    } else if constexpr (requires { typename T::value_type; }) {  // a list: the rule of its elements
        for (const auto& element : value) check_rule(problems, name, element, rule, owner);
    } else if constexpr (requires { rule.high; }) {
        check_range(problems, name, value, static_cast<T>(rule.low), static_cast<T>(rule.high), owner);
    } else if constexpr (requires { rule.low; }) {
        check_at_least(problems, name, value, static_cast<T>(rule.low), owner);
    } else if constexpr (requires { rule.most; }) {
        if (!(value > static_cast<T>(rule.bound) && value <= static_cast<T>(rule.most)))
            problems.add(bad_value(
                name, number_text(value),
                "more than " + number_text(rule.bound) + ", at most " + number_text(rule.most), owner));
    } else if constexpr (requires { rule.bound; }) {
        if (!(value > static_cast<T>(rule.bound)))  // NaN is not above anything
            problems.add(bad_value(name, number_text(value), "more than " + number_text(rule.bound), owner));
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

template <class T>
void check_enumerator(Problems& problems, std::string_view name, const T& value, std::string_view owner) {
    if constexpr (NamedEnum<T>) {
        for (const auto& row : enum_names(value))
            if (row.value == value) return;
        std::string names;
        for (const auto& row : enum_names(value))
            names.append(names.empty() ? "one of " : ", ").append(row.name);
        problems.add(bad_value(name, std::to_string(static_cast<int>(value)), names, owner));
    } else if constexpr (requires { value.has_value(); }) {
        if (value) check_enumerator(problems, name, *value, owner);
    }
}

}  // namespace detail

/// The values that a field of an integral type may have by its rules; without a rule, all of the type.
template <std::integral T, class... Rules>
[[nodiscard]] constexpr Within<T> range_of(const Rules&... rules) {
    Within<T> range{std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    (detail::narrow(range, rules), ...);
    return range;
}

/// Checks the value of every field against the rules of its table, and every enumeration against its names; each violation
/// adds one problem. The fields of inlined structs are checked as well.
/// @param owner names the object in messages, such as a node; empty for options
template <Described T>
void check_fields(Problems& problems, const T& object, std::string_view owner = {}) {
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
        const auto& value = object.*member;
        detail::check_enumerator(problems, name, value, owner);
        if constexpr ((std::is_same_v<std::remove_cvref_t<decltype(rules)>, Inlined> || ...))
            check_fields(problems, value, owner);
        else
            (detail::check_rule(problems, name, value, rules, owner), ...);
    });
}

/// @throws InvalidInput with every field whose value breaks a rule of its table
template <Described T>
void require_fields(const T& object) {
    Problems problems;
    check_fields(problems, object);
    problems.throw_if_any();
}

}  // namespace GPUSCHED_NAMESPACE
