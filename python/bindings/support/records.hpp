// SPDX-License-Identifier: Apache-2.0
// Records: plain C++ structs as Python objects with read-only attributes, equality, copies and pickling.
#pragma once

#include "support/values.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/core/fields.hpp>

#include <cstddef>

namespace gpusched::python {

namespace detail {

/// @throws InvalidInput unless there is one value per field of the table
template <Described T>
void require_all_fields(const py::tuple& values) {
    std::size_t fields = 0;
    visit_fields(std::type_identity<T>{}, [&](const char*, auto, const auto&...) { ++fields; });
    if (values.size() != fields)
        throw InvalidInput(bad_value("fields", std::to_string(values.size()), std::to_string(fields)));
}

}  // namespace detail

/// The Python form of a record type: the struct with the table of its attributes, their values in the order
/// of the table, and functions that read an attribute. Specialised for types that stand for another struct.
template <class T>
struct RecordOf {
    using Table = T;
    static py::tuple values(const T& record) {
        py::list values;
        visit_fields(std::type_identity<T>{},
                     [&](const char*, auto member, const auto&...) { values.append(record.*member); });
        return py::tuple(values);
    }
    static T record(const py::tuple& values) {
        detail::require_all_fields<T>(values);
        T record{};
        std::size_t i = 0;
        visit_fields(std::type_identity<T>{}, [&](const char*, auto member, const auto&...) {
            record.*member = values[i++].template cast<std::remove_cvref_t<decltype(record.*member)>>();
        });
        return record;
    }
    template <class Member>
    static auto attribute(std::size_t, Member member) {
        return [member](const T& record) -> const auto& { return record.*member; };
    }
};

/// Adds read-only attributes for fields of a table, with the header's documentation.
template <Described Table, class T, class... Rest>
void define_fields(py::class_<T, Rest...>& type, std::initializer_list<std::string_view> names) {
    visit_fields(std::type_identity<Table>{}, [&](const char* name, auto member, const auto&...) {
        if (std::find(names.begin(), names.end(), name) != names.end())
            type.def_readonly(name, member, doc(member, name));
    });
}

/// The values of attributes as `Type(name=value, ...)`.
inline auto repr_of_attributes(std::vector<std::string> names) {
    return [names = std::move(names)](const py::object& self) {
        std::string text;
        for (const auto& name : names)
            text += (text.empty() ? "" : ", ") + name + "=" +
                    py::repr(self.attr(name.c_str())).cast<std::string>();
        return py::type::of(self).attr("__name__").cast<std::string>() + "(" + text + ")";
    };
}

/// Adds to `type` a read-only attribute per field of its table, with the header's documentation, and
/// equality, copies, pickling and `repr`.
template <class T>
void define_record(py::class_<T>& type) {
    using R = RecordOf<T>;
    std::vector<std::string> names;
    visit_fields(std::type_identity<typename R::Table>{}, [&](const char* name, auto member, const auto&...) {
        type.def_property_readonly(name, R::attribute(names.size(), member), doc(member, name));
        names.emplace_back(name);
    });
    type.def("__repr__", repr_of_attributes(std::move(names)));
    define_value(type, &R::values, &R::record);
}

/// Adds the class of a record to a module.
/// @param text the class's documentation; by default that of the header
template <class T>
py::class_<T>
bind_record(py::module_& m, const char* name,
            const std::string& text = doc(detail::documented_name<typename RecordOf<T>::Table>())) {
    py::class_<T> type(m, name, text);
    define_record(type);
    return type;
}

}  // namespace gpusched::python
