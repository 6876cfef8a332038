// Functions that a caller wrote in Python, and their answers: what is wrong with either is said in the caller's terms.
#pragma once

#include "support/keywords.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace gpusched::python {

/// How messages call the `position`-th function of a list: by position, and by its own name if it has one.
inline std::string function_name(const std::string& list, std::size_t position, const py::object& function) {
    const auto place = list + "[" + std::to_string(position) + "]";
    if (!py::hasattr(function, "__name__")) return place;
    return place + " (" + py::str(function.attr("__name__")).cast<std::string>() + ")";
}

/// Whether Python knows that a function cannot be called with so many arguments.
inline bool takes_other_arguments(const py::object& function, std::size_t count) {
    try {
        const auto signature = py::module_::import("inspect").attr("signature")(function);
        try {
            signature.attr("bind")(*py::tuple(py::make_tuple(py::none()) * py::int_(count)));
            return false;
        } catch (const py::error_already_set& error) {
            return error.matches(PyExc_TypeError);
        }
    } catch (const py::error_already_set&) {  // functions of other languages need not have a signature
        return false;
    }
}

/// The function's answer; what it raises passes unchanged.
/// @param name how messages call the function
/// @param parameters what it is called with, such as `(cluster, task)`
/// @throws InvalidType for a function with other parameters
template <class... Arguments>
py::object ask_function(const std::string& name, const py::object& function, const char* parameters,
                        Arguments&&... arguments) {
    try {
        return function(std::forward<Arguments>(arguments)...);
    } catch (const py::error_already_set& error) {
        // Raised by the call, not within the function.
        if (error.matches(PyExc_TypeError) && (!error.trace() || error.trace().is_none()) &&
            takes_other_arguments(function, sizeof...(Arguments)))
            throw InvalidType(name + ": " + py::str(error.value()).cast<std::string>() +
                              "; expected a function that is called as f" + parameters);
        throw;
    }
}

/// A whole number that a function answered, also one in floating point.
/// @throws InvalidInput for other numbers, InvalidType for what is no number
inline std::int64_t whole_number(const std::string& field, py::handle answer) {
    const auto is_integer = PyLong_Check(answer.ptr()) != 0;
    if (PyFloat_Check(answer.ptr()) ||
        (!is_integer && py::isinstance(answer, py::module_::import("numpy").attr("floating")))) {
        const auto value = OptionType<double>::read(field, answer);
        if (!(std::trunc(value) == value && std::abs(value) < 0x1p63))
            bad_option(field, py::float_(value),
                       "a whole number; scale what is none, for example to thousandths");
        return static_cast<std::int64_t>(value);
    }
    try {
        if (!PyBool_Check(answer.ptr()) && PyIndex_Check(answer.ptr()) != 0)
            return OptionType<std::int64_t>::read(field, answer);
    } catch (const InvalidType&) {  // arrays look like integers until they are asked
    }
    bad_type(field, answer, "a whole number");
}

}  // namespace gpusched::python
