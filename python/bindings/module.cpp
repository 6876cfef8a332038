// The extension module gpusched._core. Users import the modules around it, which only re-export.
#include "core/keywords.hpp"

PYBIND11_MODULE(_core, m) {
    namespace gp = gpusched::python;
    namespace py = pybind11;
    py::options options;
    // Docstrings carry their own signatures: see documented(). Those of pybind11 have the types that the stubs show.
    if (!gp::typed_signatures()) options.disable_function_signatures();
    gp::require_own_files();
    gp::bind_core(m);
    gp::bind_model(m);
    gp::bind_topology(m);
    gp::bind_verify(m);
    gp::bind_fragmentation(m);
    gp::bind_allocation(m);
    gp::bind_consolidation(m);
    gp::bind_preemption(m);
    gp::bind_admission(m);
    gp::bind_control(m);
    gp::bind_host(m);
    gp::bind_sim(m);
    gp::bind_io(m);
    gp::bind_hardware(m);
    gp::bind_readings(m);
    gp::bind_kubernetes(m);
    gp::bind_slurm(m);
    gp::bind_documents(m);
    gp::bind_milp(m);
    gp::bind_serving(m);
    m.attr("keywords") = gp::keywords_by_function();
    gp::allow_old_protocols(m);
    gp::explain_arguments(m);
}
