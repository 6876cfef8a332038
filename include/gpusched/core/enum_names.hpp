// SPDX-License-Identifier: Apache-2.0
// Names of enumerators, for messages, formats and Python.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace gpusched {

/// The name of one enumerator.
template <class E>
struct EnumName {
    E value{};
    const char* name = nullptr;
};

/// A table of names. An enumeration needs one only if its names differ from its identifiers, or if its values
/// are not 0, 1, 2 and so on. The table comes from a function `enum_names` next to the enumeration, which is
/// found by argument-dependent lookup. Its argument only selects the enumeration:
///
///     enum class Mode : std::uint8_t { static_, dynamic };
///     constexpr auto enum_names(Mode) {
///         return name_table<Mode>({
///             {Mode::static_, "static"},
///             {Mode::dynamic, "dynamic"},
///         });
///     }
template <class E, std::size_t n>
[[nodiscard]] constexpr std::array<EnumName<E>, n> name_table(EnumName<E> (&&rows)[n]) {
    return std::to_array(std::move(rows));
}

namespace detail {

/// The identifier of an enumerator as the compiler spells it; empty for a number without an enumerator.
template <auto value>
[[nodiscard]] consteval std::string_view identifier() {
    // g++: "... [with auto value = gpusched::Colour::red; ...]", clang: "... [value = gpusched::Colour::red]";
    // a number without an enumerator is "(gpusched::Colour)7", but an unnamed namespace may stand in brackets.
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_prefix(text.rfind("value = ") + 8);
    text = text.substr(0, text.find_first_of(";]"));
    const auto last = text.find_last_of(":)");
    return last != text.npos && text[last] == ')' ? std::string_view() : text.substr(last + 1);
}

template <auto value>
inline constexpr auto terminated = [] {
    std::array<char, identifier<value>().size() + 1> text{};
    identifier<value>().copy(text.data(), text.size() - 1);
    return text;
}();

/// The number of enumerators 0, 1, 2 and so on.
template <class E, std::size_t first = 0>
[[nodiscard]] consteval std::size_t enumerator_count() {
    if constexpr (identifier<static_cast<E>(first)>().empty())
        return first;
    else
        return enumerator_count<E, first + 1>();
}

template <class E>
concept HasNameTable = requires(E value) { enum_names(value); };

}  // namespace detail

/// An enumeration with names.
template <class E>
concept NamedEnum = std::is_enum_v<E> && (detail::HasNameTable<E> || detail::enumerator_count<E>() > 0);

/// The enumerators in the order of their values, with their names.
template <NamedEnum E>
[[nodiscard]] constexpr auto enumerators() {
    if constexpr (detail::HasNameTable<E>)
        return enum_names(E{});
    else
        return []<std::size_t... at>(std::index_sequence<at...>) {
            return std::array{
                EnumName<E>{static_cast<E>(at), detail::terminated<static_cast<E>(at)>.data()}...};
        }(std::make_index_sequence<detail::enumerator_count<E>()>());
}

/// The enumerator's name; "unknown" for any other number.
template <NamedEnum E>
[[nodiscard]] constexpr const char* enum_name(E value) noexcept {
    for (const auto& [enumerator, name] : enumerators<E>())
        if (enumerator == value) return name;
    return "unknown";
}

}  // namespace gpusched
