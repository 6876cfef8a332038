// SPDX-License-Identifier: Apache-2.0
// Errors and the version.
#include "support/keywords.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/version.hpp>

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

void bind_core(py::module_& m) {
    py::register_exception_translator(translate);
    m.attr("__version__") = version;
    m.def(
        "did_you_mean",
        [](const std::string& name, const std::vector<std::string>& known) {
            return did_you_mean(name, known);
        },
        py::arg("name"), py::arg("known"), documented(doc("did_you_mean")));
}

}  // namespace gpusched::python
