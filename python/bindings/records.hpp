// Records: plain C++ structs as Python objects with read-only attributes, equality, copies and pickling.
#pragma once

#include "bindings.hpp"
#include "keywords.hpp"

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::python {

/// One attribute of a record.
template <class T, class V>
struct Attribute {
    const char* name;
    V T::*member;
    std::string text;
};

/// @param text its documentation; from the header if empty
template <class T, class V>
Attribute<T, V> attribute(const char* name, V T::*member, std::string text) {
    return {name, member, std::move(text)};
}

namespace detail {

/// Equality, copies, pickling and text of a record.
/// @param names of its attributes
/// @param each calls its argument with a pointer to every member, in that order
template <class T, class Each>
void define_record_methods(py::class_<T>& type, std::vector<std::string> names, const Each& each) {
    const auto state = [each](const T& record) {
        py::list values;
        each([&](auto member) { values.append(py::cast(record.*member)); });
        return py::tuple(values);
    };
    type.def("__eq__",
             [state](const T& record, const py::object& other) -> py::object {
                 if (!py::isinstance<T>(other)) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
                 return py::bool_(state(record).equal(state(other.cast<const T&>())));
             })
        .def("__copy__", [](const T& record) { return record; })
        .def(
            "__deepcopy__", [](const T& record, const py::dict&) { return record; }, py::arg("memo"))
        .def(py::pickle(state, [each](const py::tuple& values) {
            T record{};
            std::size_t i = 0;
            each([&](auto member) {
                record.*member = values[i++].cast<std::remove_cvref_t<decltype(record.*member)>>();
            });
            return record;
        }));
    type.def("__repr__", [names = std::move(names)](const py::object& self) {
        std::string text;
        for (const auto& name : names)
            text += (text.empty() ? "" : ", ") + name + "=" +
                    py::repr(self.attr(name.c_str())).template cast<std::string>();
        return py::str(py::type::of(self).attr("__name__")).template cast<std::string>() + "(" + text + ")";
    });
}

}  // namespace detail

/// Adds the attributes to `type`, and all that follows from them. They may belong to a base of `T`.
template <class T, class... Owner, class... V>
    requires(sizeof...(V) > 0)
void define_record(py::class_<T>& type, const Attribute<Owner, V>&... attributes) {
    (type.def_readonly(attributes.name, attributes.member, attributes.text.c_str()), ...);
    detail::define_record_methods(type, {attributes.name...},
                                  [... members = attributes.member](auto&& use) { (use(members), ...); });
}

/// The same for a struct with a table of fields, documented in its header.
template <Described T>
void define_record(py::class_<T>& type) {
    std::vector<std::string> names;
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&...) {
        type.def_readonly(name, member, doc(detail::documented_name<T>() + "::" + name).c_str());
        names.emplace_back(name);
    });
    detail::define_record_methods(type, std::move(names), [](auto&& use) {
        visit_fields(std::type_identity<T>{}, [&](const char*, auto member, const auto&...) { use(member); });
    });
}

}  // namespace gpusched::python
