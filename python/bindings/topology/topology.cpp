// The module gpusched.topology.
#include "support/bindings.hpp"

namespace gpusched::python {

// The parts of the module in other files.
void bind_network(py::module_& m);
void bind_hardware(py::module_& m);

void bind_topology(py::module_& parent) {
    auto m = submodule(parent, "topology");
    bind_network(m);
    bind_hardware(m);
}

}  // namespace gpusched::python
