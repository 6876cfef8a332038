// SPDX-License-Identifier: Apache-2.0
// Timelines of replays in Python: classes with one read-only array per column.
#pragma once

#include "support/arguments.hpp"
#include "support/arrays.hpp"
#include "support/records.hpp"
#include "support/values.hpp"

#include <gpusched/core/fields.hpp>

#include <cstddef>

namespace gpusched::python {

/// @param name of the class
/// @param entries unit of the entries, such as "arrivals"
template <class T>
void bind_timeline(py::module_& m, const char* name, const char* text, const char* entries) {
    using Shared = std::shared_ptr<T>;
    py::class_<T, Shared> type(m, name, text);
    visit_fields(std::type_identity<T>{}, [&](const char* column, auto member, const auto&...) {
        type.def_property_readonly(
            column, [member](const Shared& t) { return view((*t).*member, t); }, doc(member, column));
    });
    const auto columns = [](const T& t) {
        py::list values;
        visit_fields(std::type_identity<T>{},
                     [&](const char*, auto member, const auto&...) { values.append(py::cast(t.*member)); });
        return py::tuple(values);
    };
    type.def("__len__", &T::size)
        .def(
            "to_pandas",
            [](const py::object& self) -> Frame {
                py::dict frame;
                visit_fields(std::type_identity<T>{}, [&](const char* column, auto, const auto&...) {
                    frame[column] = self.attr(column);
                });
                return py::module_::import("pandas").attr("DataFrame")(frame);
            },
            documented("Returns the timeline as a pandas DataFrame."))
        .def(
            "__eq__", [](const T& a, const T& b) { return a == b; }, py::is_operator())
        .def("__repr__", [name = std::string(name), entries = std::string(entries)](const T& t) {
            return "<gpusched.sim." + name + " of " + std::to_string(t.size()) + " " + entries + ">";
        });
    define_pickling(type, columns, [](const py::tuple& values) {
        detail::require_all_fields<T>(values);
        auto made = std::make_shared<T>();
        std::size_t i = 0;
        visit_fields(std::type_identity<T>{}, [&](const char*, auto member, const auto&...) {
            (*made).*member = values[i++].template cast<std::remove_cvref_t<decltype((*made).*member)>>();
        });
        visit_fields(std::type_identity<T>{}, [&](const char*, auto member, const auto&...) {
            if (((*made).*member).size() != made->size()) throw InvalidInput("columns of different lengths");
        });
        return made;
    });
}

}  // namespace gpusched::python
