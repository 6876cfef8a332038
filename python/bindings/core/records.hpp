// Records: plain C++ structs as Python objects with read-only attributes, equality, copies and pickling.
#pragma once

#include "core/keywords.hpp"

#include <gpusched/core/fields.hpp>

#include <cstddef>
#include <string>
#include <type_traits>

namespace gpusched::python {

namespace detail {

/// The values of a record's fields, in the order of its table.
template <Described T>
py::tuple values_of(const T& record) {
    py::list values;
    visit_fields(std::type_identity<T>{},
                 [&](const char*, auto member, const auto&...) { values.append(record.*member); });
    return py::tuple(values);
}

template <Described T>
T record_of(const py::tuple& values) {
    T record{};
    std::size_t i = 0;
    visit_fields(std::type_identity<T>{}, [&](const char*, auto member, const auto&...) {
        record.*member = values[i++].template cast<std::remove_cvref_t<decltype(record.*member)>>();
    });
    return record;
}

template <Described T>
std::string repr_of(const py::object& self) {
    std::string text;
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto, const auto&...) {
        text += (text.empty() ? "" : ", ") + std::string(name) + "=" +
                py::repr(self.attr(name)).template cast<std::string>();
    });
    return py::type::of(self).attr("__name__").template cast<std::string>() + "(" + text + ")";
}

/// The class that a pointer to a member belongs to.
template <class M>
struct OwnerOf;
template <class V, class T>
struct OwnerOf<V T::*> {
    using type = T;
};

}  // namespace detail

/// Adds to `type` a read-only attribute per field of the table of `T`, documented as in the header, and all that follows from
/// them: equality, copies, pickling and `repr`.
template <Described T>
void define_record(py::class_<T>& type) {
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&...) {
        using Owner = typename detail::OwnerOf<decltype(member)>::type;
        type.def_readonly(name, member, doc(detail::documented_name<Owner>() + "::" + name).c_str());
    });
    type.def("__eq__",
             [](const T& record, const py::object& other) -> py::object {
                 if (!py::isinstance<T>(other)) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
                 return py::bool_(detail::values_of(record).equal(detail::values_of(other.cast<const T&>())));
             })
        .def("__copy__", [](const T& record) { return record; })
        .def(
            "__deepcopy__", [](const T& record, const py::dict&) { return record; }, py::arg("memo"))
        .def("__repr__", &detail::repr_of<T>)
        .def(py::pickle(&detail::values_of<T>, &detail::record_of<T>));
}

}  // namespace gpusched::python
