// The extension module gpusched._core. Users import the modules around it, which only re-export.
#include "support/keywords.hpp"

#include <string>

namespace gpusched::python {

namespace {

/// Asks `gpusched._distribution` whether the files around the module are its own.
/// @throws import_error with its message: of an error from Python, pybind11 shows "initialization failed" alone
void require_own_files() {
    try {
        py::module_::import("gpusched._distribution").attr("require_own_files")();
    } catch (const py::error_already_set& error) {
        throw py::import_error(py::str(error.value()).cast<std::string>());
    }
}

}  // namespace

}  // namespace gpusched::python

PYBIND11_MODULE(_core, m) {
    namespace gp = gpusched::python;
    namespace py = pybind11;
    py::options options;
    // Docstrings carry their own signatures: see documented(). Those of pybind11 have the types that the stubs show.
    if (!gp::typed_signatures()) options.disable_function_signatures();
    gp::require_own_files();
    // In this order: a signature names a class only once that is bound, and io gives the traces of sim.
    gp::bind_core(m);
    gp::bind_json(m);
    gp::bind_model(m);
    gp::bind_topology(m);
    gp::bind_verify(m);
    gp::bind_fragmentation(m);
    gp::bind_allocation(m);
    gp::bind_consolidation(m);
    gp::bind_preemption(m);
    gp::bind_admission(m);
    gp::bind_control(m);
    gp::bind_sim(m);
    gp::bind_io(m);
    gp::bind_milp(m);
    gp::bind_serving(m);
    m.attr("keywords") = gp::keywords_by_function();
    gp::allow_old_protocols(m);
    gp::explain_arguments(m);
}
