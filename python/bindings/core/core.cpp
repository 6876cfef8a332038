// Errors and the version.
#include "core/keywords.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/core/nearest_names.hpp>
#include <gpusched/json/document.hpp>
#include <gpusched/version.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::python {

namespace {

void raise(const char* name, const py::object& argument) {
    const auto type = py::module_::import("gpusched.errors").attr(name);
    PyErr_SetObject(type.ptr(), type(argument).ptr());
}

void translate(std::exception_ptr error) {
    try {
        std::rethrow_exception(std::move(error));
    } catch (const InvalidType& e) {
        raise("InvalidType", foreign_texts(e.problems()));
    } catch (const InvalidInput& e) {
        raise("InvalidInput", foreign_texts(e.problems()));
    } catch (const BackendError& e) {
        raise("BackendError", foreign_text(e.what()));
    }
}

}  // namespace

py::str foreign_text(std::string_view text) {
    return py::reinterpret_steal<py::str>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "backslashreplace"));
}

py::list foreign_texts(const std::vector<std::string>& texts) {
    py::list out;
    for (const auto& text : texts) out.append(foreign_text(text));
    return out;
}

void allow_old_protocols(const py::handle& scope) {
    // For these protocols Python makes an object of the last class not written in Python, pybind11's base, whose
    // constructor ends the process. Protocol 2 asks the object itself, and what it answers suits the older ones.
    const auto reduce = py::module_::import("builtins").attr("object").attr("__reduce_ex__");
    const auto metaclass = reinterpret_cast<PyObject*>(py::detail::get_internals().default_metaclass);
    for (const auto member : scope.attr("__dict__").attr("values")()) {
        if (py::isinstance<py::module_>(member)) {
            allow_old_protocols(member);
        } else if (py::isinstance(member, metaclass)) {
            member.attr("__reduce_ex__") =
                py::cpp_function([reduce](const py::object& self,
                                          int protocol) { return reduce(self, std::max(protocol, 2)); },
                                 py::name("__reduce_ex__"), py::is_method(member), py::arg("protocol"));
            allow_old_protocols(member);
        }
    }
}

void require_own_files() {
    try {
        py::module_::import("gpusched._distribution").attr("require_own_files")();
    } catch (const py::error_already_set& error) {
        throw py::import_error(py::str(error.value()).cast<std::string>());
    }
}

void bind_core(py::module_& m) {
    py::register_exception_translator(translate);
    m.attr("__version__") = version;
    m.attr("deepest_nesting") = json::deepest_nesting;
    m.def(
        "did_you_mean",
        [](const std::string& name, const std::vector<std::string>& known) {
            return did_you_mean(name, known);
        },
        py::arg("name"), py::arg("known"),
        documented("did_you_mean(name, known)", doc("did_you_mean")).c_str());
}

}  // namespace gpusched::python
