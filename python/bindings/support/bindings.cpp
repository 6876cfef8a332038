// SPDX-License-Identifier: Apache-2.0
// Docstrings, text from other sources, and pickles with old protocols.
#include "support/bindings.hpp"

#include <gpusched/core/errors.hpp>

namespace gpusched::python {

void Docstring::add_to(py::detail::function_record& function) const {
    std::string signature;
    const auto add = [&](const std::string& parameter) {
        signature += (signature.empty() ? "" : ", ") + parameter;
    };
    if (function.is_method && function.args.empty()) add("self");
    bool only_keywords = rest.starts_with("*");
    for (std::size_t i = 0; i < function.args.size(); ++i) {
        const auto& argument = function.args[i];
        if (i == function.nargs_pos && !only_keywords) {
            add("*");
            only_keywords = true;
        }
        add(argument.name + (argument.value ? "=" + py::repr(argument.value).cast<std::string>() : ""));
    }
    if (!rest.empty()) add(rest);
    if (!keywords.empty()) add((only_keywords ? "" : "*, ") + keywords);
    whole = std::string(function.name) + "(" + signature + ")\n--\n\n" + text;
    function.doc = whole.data();
}

py::str foreign_text(std::string_view text) {
    return py::reinterpret_steal<py::str>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "backslashreplace"));
}

py::list foreign_texts(const std::vector<std::string>& texts) {
    py::list out;
    for (const auto& text : texts) out.append(foreign_text(text));
    return out;
}

void refuse_without_value() {
    throw InvalidInput(
        "an object has no value: `__new__` made it, without a call of its class or the state of a "
        "pickle");
}

void check_pickles(const py::handle& scope) {
    // For the old protocols and `__reduce__`, Python calls the constructor of pybind11's base class, which ends
    // the process. This is what it does for protocol 2, and valid for all.
    const auto make = py::module_::import("copyreg").attr("__newobj__");
    const auto metaclass = reinterpret_cast<PyObject*>(py::detail::get_internals().default_metaclass);
    for (const auto member : scope.attr("__dict__").attr("values")()) {
        if (py::isinstance<py::module_>(member)) {
            check_pickles(member);
        } else if (py::isinstance(member, metaclass)) {
            // pybind11 calls this for an object without a value.
            auto* const type = py::detail::get_type_info(reinterpret_cast<PyTypeObject*>(member.ptr()));
            type->operator_new = [](std::size_t) -> void* { refuse_without_value(); };
            member.attr("__reduce__") = py::cpp_function(
                [make](const py::object& self) {
                    if (!py::hasattr(self, "__setstate__"))
                        throw py::type_error("cannot pickle '" + std::string(Py_TYPE(self.ptr())->tp_name) +
                                             "' object");
                    return py::make_tuple(make, py::make_tuple(py::type::of(self)),
                                          self.attr("__getstate__")());
                },
                py::name("__reduce__"), py::is_method(member));
            check_pickles(member);
        }
    }
}

}  // namespace gpusched::python
