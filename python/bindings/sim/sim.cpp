// The module gpusched.sim.
#include "support/bindings.hpp"

namespace gpusched::python {

// The parts of the module in other files.
void bind_trace(py::module_& m);
void bind_replay(py::module_& m);
void bind_host_simulation(py::module_& m);
void bind_spot_jobs(py::module_& m);
void bind_harvest(py::module_& m);
void bind_generate(py::module_& m);

void bind_sim(py::module_& parent) {
    auto m = submodule(parent, "sim");
    bind_trace(m);
    bind_replay(m);
    bind_host_simulation(m);
    bind_spot_jobs(m);
    bind_harvest(m);
    bind_generate(m);
}

}  // namespace gpusched::python
