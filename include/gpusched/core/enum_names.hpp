// Names of enumerators: one table beside each enumeration, for messages, formats and Python.
#pragma once

#include <cstddef>
#include <type_traits>

namespace gpusched {

/// The name of one enumerator.
template <class E>
struct EnumName {
    E value{};
    const char* name = nullptr;
};

/// The names of an enumeration's `n` enumerators. Not std::array of std::pair: both cost too much to include.
template <class E, std::size_t n>
struct EnumTable {
    EnumName<E> rows[n];

    [[nodiscard]] static constexpr std::size_t size() noexcept { return n; }
    [[nodiscard]] constexpr const EnumName<E>& operator[](std::size_t i) const noexcept { return rows[i]; }
    [[nodiscard]] constexpr const EnumName<E>* begin() const noexcept { return rows; }
    [[nodiscard]] constexpr const EnumName<E>* end() const noexcept { return rows + n; }
};

/// The names of an enumeration, an `EnumTable`. Specialise it beside the enumeration.
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
[[nodiscard]] constexpr EnumTable<E, n> name_table(const EnumName<E> (&rows)[n]) {
    EnumTable<E, n> table{};
    for (std::size_t i = 0; i < n; ++i) table.rows[i] = rows[i];
    return table;
}

}  // namespace gpusched
