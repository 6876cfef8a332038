// SPDX-License-Identifier: Apache-2.0
// Calls of the caller's Python functions. Errors in a function's parameters or result name the function.
#pragma once

#include "support/keywords.hpp"

#include <cmath>
#include <cstddef>

namespace gpusched::python {

/// The name in messages of the `position`-th function of a list: its position, and its own name if it has
/// one.
inline std::string function_name(const std::string& list, std::size_t position, const py::object& function) {
    const auto place = list + "[" + std::to_string(position) + "]";
    if (!py::hasattr(function, "__name__")) return place;
    return place + " (" + py::str(function.attr("__name__")).cast<std::string>() + ")";
}

/// Whether Python knows that a function cannot be called with `count` arguments.
inline bool takes_other_arguments(const py::object& function, std::size_t count) {
    try {
        const auto signature = py::module_::import("inspect").attr("signature")(function);
        try {
            signature.attr("bind")(*py::tuple(py::make_tuple(py::none()) * py::int_(count)));
            return false;
        } catch (const py::error_already_set& error) {
            return error.matches(PyExc_TypeError);
        }
    } catch (const py::error_already_set&) {  // functions of extension modules may have no signature
        return false;
    }
}

/// Calls a function and returns its result; exceptions pass unchanged.
/// @param name name of the function in messages
/// @param parameters its parameters in messages, such as `(cluster, task)`
/// @throws InvalidType if the function has other parameters
template <class... Arguments>
py::object ask_function(const std::string& name, const py::object& function, const char* parameters,
                        Arguments&&... arguments) {
    try {
        return call_python(function, std::forward<Arguments>(arguments)...);
    } catch (const py::error_already_set& error) {
        // An error without a traceback was raised by the call, not within the function.
        if (error.matches(PyExc_TypeError) && (!error.trace() || error.trace().is_none()) &&
            takes_other_arguments(function, sizeof...(Arguments)))
            throw InvalidType(name + ": " + py::str(error.value()).cast<std::string>() +
                              "; expected a function f" + parameters);
        throw;
    }
}

/// An integer result of a function, possibly as a floating-point number.
/// @throws InvalidInput for other numbers; InvalidType for other types
inline std::int64_t whole_number(const std::string& field, py::handle answer) {
    const auto is_integer = PyLong_Check(answer.ptr()) != 0;
    if (PyFloat_Check(answer.ptr()) ||
        (!is_integer && py::isinstance(answer, py::module_::import("numpy").attr("floating")))) {
        const auto value = OptionType<double>::read(field, answer);
        if (!(std::trunc(value) == value && std::abs(value) < 0x1p63))
            bad_option(field, py::float_(value),
                       "an integer; scale other numbers, for example to thousandths");
        return static_cast<std::int64_t>(value);
    }
    try {
        if (!PyBool_Check(answer.ptr()) && PyIndex_Check(answer.ptr()) != 0)
            return OptionType<std::int64_t>::read(field, answer);
    } catch (const InvalidType&) {  // arrays look like integers until they are converted
    }
    bad_type(field, answer, "an integer");
}

}  // namespace gpusched::python
