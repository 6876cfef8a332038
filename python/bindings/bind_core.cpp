// Errors and the version.
#include "bindings.hpp"

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
    } catch (const InvalidInput& e) {
        raise("InvalidInput", py::cast(e.problems()));
    } catch (const BackendError& e) {
        raise("BackendError", py::str(e.what()));
    }
}

}  // namespace

void bind_core(py::module_& m) {
    py::register_exception_translator(translate);
    m.attr("__version__") = version;
}

}  // namespace gpusched::python
