// SPDX-License-Identifier: Apache-2.0
// Enumerations with names: in Python, an enumerator is a string.
#pragma once

#include <gpusched/core/enum_names.hpp>

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace gpusched::python {

/// The text of a Python type, as a template argument.
template <std::size_t n>
struct TypeText {
    char text[n] = {};
    constexpr TypeText() = default;
    constexpr TypeText(const char (&chars)[n]) { std::copy_n(chars, n, text); }  // NOLINT: implicit
};

namespace detail {

/// Writes `Literal['a', 'b']` for the names of an enumeration, unless `out` is null. Returns the length.
template <NamedEnum E>
constexpr std::size_t write_literal(char* out) {
    std::size_t size = 0;
    const auto put = [&](std::string_view text) {
        for (const char c : text) {
            if (out != nullptr) out[size] = c;
            ++size;
        }
    };
    put("Literal[");
    bool first = true;
    for (const auto& row : enumerators<E>()) {
        put(first ? "'" : ", '");
        put(row.name);
        put("'");
        first = false;
    }
    put("]");
    return size;
}

template <NamedEnum E>
constexpr auto make_literal() {
    TypeText<write_literal<E>(nullptr) + 1> type{};
    write_literal<E>(type.text);
    return type;
}

}  // namespace detail

/// The Python type of an enumeration.
template <NamedEnum E>
inline constexpr auto literal_type = detail::make_literal<E>();

}  // namespace gpusched::python

namespace pybind11::detail {

/// Disables pybind11's caster, which looks for a class of Python's `enum`.
template <gpusched::NamedEnum E>
struct type_caster_enum_type_enabled<E> : std::false_type {};

template <gpusched::NamedEnum E>
class type_caster<E> {
  public:
    PYBIND11_TYPE_CASTER(E, const_name(gpusched::python::literal_type<E>.text));

    bool load(handle source, bool) {
        if (!isinstance<str>(source)) return false;
        for (const auto& row : gpusched::enumerators<E>())
            if (source.equal(str(row.name))) {
                value = row.value;
                return true;
            }
        return false;
    }
    static handle cast(E enumerator, return_value_policy, handle) {
        return str(gpusched::enum_name(enumerator)).release();
    }
};

}  // namespace pybind11::detail
