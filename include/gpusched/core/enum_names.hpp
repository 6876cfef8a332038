// SPDX-License-Identifier: Apache-2.0
// Names of enumerators: one table next to each enumeration, for messages, formats and Python.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace gpusched {

/// The name of one enumerator.
template <class E>
struct EnumName {
    E value{};
    const char* name = nullptr;
};

/// A table of names. The names of an enumeration come from a function `enum_names` next to it, which is found
/// by argument-dependent lookup. Its argument only selects the enumeration:
///
///     enum class Colour : std::uint8_t { red, green };
///     constexpr auto enum_names(Colour) {
///         return name_table<Colour>({
///             {Colour::red, "red"},
///             {Colour::green, "green"},
///         });
///     }
template <class E, std::size_t n>
[[nodiscard]] constexpr std::array<EnumName<E>, n> name_table(EnumName<E> (&&rows)[n]) {
    return std::to_array(std::move(rows));
}

/// An enumeration with a table of names.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) { enum_names(value); };

/// The enumerator's name; "unknown" for any other number.
template <NamedEnum E>
[[nodiscard]] constexpr const char* enum_name(E value) noexcept {
    for (const auto& [enumerator, name] : enum_names(value))
        if (enumerator == value) return name;
    return "unknown";
}

}  // namespace gpusched
