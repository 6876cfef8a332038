// SPDX-License-Identifier: Apache-2.0
// Errors of calls with arguments that match no signature. They name the argument, its value and the
// expectation, instead of pybind11's list of C++ signatures. One function replaces pybind11's entry point for
// every function, method and constructor.
#include "support/bindings.hpp"

#include <unordered_map>

namespace gpusched::python {

namespace {

// pybind11 gives all functions of a module the same entry point. Up to version 3.0 it takes a tuple and a
// dict.
using ArrayEntry = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
using TupleEntry = PyObject* (*)(PyObject*, PyObject*, PyObject*);
PyCFunction pybind_entry = nullptr;

template <class To, class From>
To function_cast(From function) {
    return reinterpret_cast<To>(reinterpret_cast<void (*)()>(function));
}

/// The functions of the module, by the record that CPython passes to their entry point. They are never freed.
std::unordered_map<PyObject*, PyObject*>& functions() {
    static auto* table = new std::unordered_map<PyObject*, PyObject*>;
    return *table;
}

/// If the current Python error says that no signature matches, clears it and returns its text.
py::object take_mismatch() {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return {};
    py::error_already_set error;
    const py::object text = py::str(error.value());
    if (py::type::of(error.value()).is(py::handle(PyExc_TypeError)) &&
        text.contains(py::str("(): incompatible ")) && text.contains(py::str("Invoked with: ")))
        return text;
    error.restore();
    return {};
}

/// @param arguments returns the positional arguments as a tuple and the keywords as a dict
template <class Arguments>
PyObject* explained(PyObject* record, PyObject* result, Arguments&& arguments) {
    if (result != nullptr) return result;
    try {
        if (const auto text = take_mismatch()) {
            const auto [positional, keywords] = arguments();
            const auto error =
                py::module_::import("gpusched._call_errors")
                    .attr("call_error")(py::handle(functions().at(record)), text, positional, keywords);
            PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
        }
    } catch (py::error_already_set& error) {
        error.restore();
    }
    return nullptr;
}

PyObject* call_with_array(PyObject* record, PyObject* const* values, Py_ssize_t size, PyObject* names) {
    auto* result = function_cast<ArrayEntry>(pybind_entry)(record, values, size, names);
    return explained(record, result, [&] {
        const auto positional = static_cast<std::size_t>(PyVectorcall_NARGS(static_cast<std::size_t>(size)));
        py::tuple tuple(positional);
        for (std::size_t i = 0; i < positional; ++i) tuple[i] = py::reinterpret_borrow<py::object>(values[i]);
        py::dict keywords;
        if (names != nullptr) {
            std::size_t i = positional;
            for (const auto name : py::reinterpret_borrow<py::tuple>(names))
                keywords[name] = py::handle(values[i++]);
        }
        return std::pair(tuple, keywords);
    });
}

PyObject* call_with_tuple(PyObject* record, PyObject* positional, PyObject* keywords) {
    auto* result = function_cast<TupleEntry>(pybind_entry)(record, positional, keywords);
    return explained(record, result, [&] {
        return std::pair(py::reinterpret_borrow<py::tuple>(positional),
                         keywords == nullptr ? py::dict() : py::reinterpret_borrow<py::dict>(keywords));
    });
}

void explain_function(py::handle function) {
    if (PyInstanceMethod_Check(function.ptr())) function = PyInstanceMethod_GET_FUNCTION(function.ptr());
    if (!PyCFunction_Check(function.ptr())) return;
    auto* method = reinterpret_cast<PyCFunctionObject*>(function.ptr())->m_ml;
    if (method->ml_meth != pybind_entry) return;
    functions()[PyCFunction_GET_SELF(function.ptr())] = function.inc_ref().ptr();
    const bool array = (method->ml_flags & METH_FASTCALL) != 0;
    method->ml_meth =
        array ? function_cast<PyCFunction>(call_with_array) : function_cast<PyCFunction>(call_with_tuple);
}

void explain_members(py::handle scope) {
    const auto metaclass = reinterpret_cast<PyObject*>(py::detail::get_internals().default_metaclass);
    const auto builtins = py::module_::import("builtins");
    for (const auto member : scope.attr("__dict__").attr("values")()) {
        if (py::isinstance<py::module_>(member) || py::isinstance(member, metaclass)) {
            explain_members(member);
        } else if (py::isinstance(member, builtins.attr("property"))) {
            explain_function(member.attr("fget"));
            explain_function(member.attr("fset"));
        } else if (py::isinstance(member, builtins.attr("staticmethod"))) {
            explain_function(member.attr("__func__"));
        } else {
            explain_function(member);
        }
    }
}

}  // namespace

void explain_arguments(const py::module_& m) {
    const py::cpp_function any([] {});
    pybind_entry = reinterpret_cast<PyCFunctionObject*>(any.ptr())->m_ml->ml_meth;
    explain_members(m);
}

}  // namespace gpusched::python
