// SPDX-License-Identifier: Apache-2.0
// Values: Python objects that are compared, copied and pickled by their state.
#pragma once

#include "support/bindings.hpp"

#include <gpusched/core/errors.hpp>

#include <cmath>
#include <tuple>

namespace gpusched::python {

/// Whether two states of objects are equal; NaN is equal to NaN.
inline bool same_state(py::handle a, py::handle b) {
    if (PyFloat_Check(a.ptr()) && PyFloat_Check(b.ptr())) {
        const double x = PyFloat_AS_DOUBLE(a.ptr()), y = PyFloat_AS_DOUBLE(b.ptr());
        return x == y || (std::isnan(x) && std::isnan(y));
    }
    if (!py::isinstance<py::tuple>(a) || !py::isinstance<py::tuple>(b)) return a.equal(b);
    const auto left = py::reinterpret_borrow<py::tuple>(a), right = py::reinterpret_borrow<py::tuple>(b);
    if (left.size() != right.size()) return false;
    for (std::size_t i = 0; i < left.size(); ++i)
        if (!same_state(left[i], right[i])) return false;
    return true;
}

namespace detail {

/// The form of a state in a pickle.
template <class State>
using Pickled = std::conditional_t<std::is_base_of_v<py::object, State>, State, py::tuple>;

template <class State>
Pickled<State> pickled(State state) {
    if constexpr (std::is_base_of_v<py::object, State>)
        return state;
    else
        return py::cast(std::move(state));
}

}  // namespace detail

/// Adds pickling to a class. No class is pickled in another way.
/// @param save returns the state of an object: a `std::tuple` of values that Python can hold, or a Python
/// object
/// @param load makes an object from a state; other states are an InvalidInput that names the class
template <class T, class... Rest, class Save, class Load>
void define_pickling(py::class_<T, Rest...>& type, Save save, Load load) {
    using State = std::remove_cvref_t<std::invoke_result_t<Save, const T&>>;
    const auto name = type.attr("__name__").template cast<std::string>();
    type.def(py::pickle(
        [save](const T& value) { return detail::pickled(save(value)); },
        [load, name](const detail::Pickled<State>& state) {
            try {
                return load(state.template cast<State>());
            } catch (const py::cast_error&) {
                throw InvalidInput("the pickled state of " + name + ": does not match this version");
            } catch (const py::error_already_set& error) {  // of a conversion to Python
                if (!error.matches(PyExc_TypeError)) throw;
                throw InvalidInput("the pickled state of " + name + ": does not match this version");
            } catch (const InvalidInput& error) {
                throw InvalidInput("the pickled state of " + name + ": " + error.what());
            }
        }));
}

/// Adds equality to a class: two objects are equal if their states are equal.
/// @param save as for `define_pickling`
template <class T, class... Rest, class Save>
void define_equality(py::class_<T, Rest...>& type, Save save) {
    type.def("__eq__", [save](const py::object& self, const py::object& other) -> py::object {
        if (!py::type::of(self).is(py::type::of(other)))
            return py::reinterpret_borrow<py::object>(Py_NotImplemented);
        if (self.is(other)) return py::bool_(true);
        return py::bool_(same_state(detail::pickled(save(self.cast<const T&>())),
                                    detail::pickled(save(other.cast<const T&>()))));
    });
}

/// Adds copies to a class of unchangeable objects: a copy is the object itself.
template <class T, class... Rest>
void define_copies(py::class_<T, Rest...>& type) {
    type.def("__copy__", [](const py::object& self) { return self; })
        .def(
            "__deepcopy__", [](const py::object& self, const py::dict&) { return self; }, py::arg("memo"));
}

/// Adds equality, copies and pickling to a class of unchangeable objects.
template <class T, class... Rest, class Save, class Load>
void define_value(py::class_<T, Rest...>& type, Save save, Load load) {
    define_equality(type, save);
    define_copies(type);
    define_pickling(type, save, load);
}

}  // namespace gpusched::python
