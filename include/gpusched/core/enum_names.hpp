// Names of enumerators: one table beside each enumeration, for messages, formats and Python.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace gpusched {

/// The names of an enumeration, an array of (enumerator, name). Specialise it beside the enumeration.
template <class E>
inline constexpr auto enum_names = nullptr;

/// An enumeration with a table of names.
template <class E>
concept NamedEnum =
    std::is_enum_v<E> && !std::is_same_v<std::remove_cvref_t<decltype(enum_names<E>)>, std::nullptr_t>;

/// The enumerator's name; "unknown" for a number that is no enumerator.
template <NamedEnum E>
[[nodiscard]] constexpr const char* enum_name(E value) noexcept {
    for (const auto& [enumerator, name] : enum_names<E>)
        if (enumerator == value) return name;
    return "unknown";
}

/// A table for `enum_names`.
template <class E, std::size_t n>
[[nodiscard]] constexpr std::array<std::pair<E, const char*>, n>
name_table(const std::pair<E, const char*> (&rows)[n]) {
    return std::to_array(rows);
}

}  // namespace gpusched
