// SPDX-License-Identifier: Apache-2.0
// The extension module gpusched._core. Users import the public modules, which re-export its parts.
#include "support/keywords.hpp"

namespace gpusched::python {

namespace {

/// Asks `gpusched._installation` whether the files around the module belong to this distribution.
/// @throws import_error with its message, because pybind11 replaces messages of Python errors by
/// "initialization failed"
void require_own_files() {
    try {
        py::module_::import("gpusched._installation").attr("require_own_files")();
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
    // Docstrings contain their own signatures, see documented(). pybind11's signatures have the types for the
    // stubs.
    if (!gp::typed_signatures()) options.disable_function_signatures();
    gp::require_own_files();
    // The order matters: a signature names a class only if it is already bound, and io uses the traces of
    // sim.
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
    gp::check_pickles(m);
    gp::explain_arguments(m);
}
