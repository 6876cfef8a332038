// SPDX-License-Identifier: Apache-2.0
// Structs with tables of fields as dicts.
#pragma once

#include "support/documents.hpp"
#include "support/keywords.hpp"

namespace gpusched::python {

template <Described T>
py::list dicts_from(const std::vector<T>& objects);

/// The fields of a table as a dict.
template <Described T>
py::dict dict_from(const T& object) {
    py::dict result;
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
        if constexpr (gpusched::detail::has_mark<Inlined, decltype(rules)...>)
            result.attr("update")(dict_from(object.*member));
        else if constexpr (requires { dicts_from(object.*member); })
            result[name] = dicts_from(object.*member);
        else
            result[name] = object.*member;
    });
    return result;
}
template <Described T>
py::list dicts_from(const std::vector<T>& objects) {
    py::list result;
    for (const auto& object : objects) result.append(dict_from(object));
    return result;
}

/// The fields of a table as a dict, without absent fields and without fields that documents omit at their
/// defaults.
template <Described T>
py::dict stated_fields(const T& object) {
    py::dict result;
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
        const auto& value = object.*member;
        if constexpr (gpusched::detail::has_mark<UnlessDefault, decltype(rules)...>)
            if (value == T{}.*member) return;
        if constexpr (Described<std::remove_cvref_t<decltype(value)>>) {
            result[name] = stated_fields(value);
        } else if constexpr (requires { value.has_value(); }) {
            if (!value) return;
            if constexpr (Described<std::remove_cvref_t<decltype(*value)>>)
                result[name] = stated_fields(*value);
            else
                result[name] = *value;
        } else {
            result[name] = value;
        }
    });
    return result;
}

/// A struct with a table of fields is a dict in Python, read like its document. None stands for its defaults.
template <Described T>
struct OptionType<T> {
    static constexpr bool is_dict = true;
    static T read(const std::string& field, py::handle value) {
        return value.is_none() ? T{} : from_python<T>(field, value);
    }
    static std::string literal(const T&) { return "None"; }
    static std::string type() { return "Mapping[str, Any] | None"; }
};

/// A list of such dicts is read as one document.
template <Described T>
    requires(OptionType<T>::is_dict)
struct OptionType<std::vector<T>> {
    static std::vector<T> read(const std::string& field, py::handle value) {
        if (py::isinstance<py::str>(value) || !py::isinstance<py::iterable>(value))
            bad_option(field, value, "a list");
        return from_python<std::vector<T>>(field, py::list(py::reinterpret_borrow<py::object>(value)));
    }
    static std::string literal(const std::vector<T>&) { return "[]"; }
    static std::string type() { return "Sequence[Mapping[str, Any]]"; }
};

}  // namespace gpusched::python
