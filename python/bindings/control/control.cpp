// The module gpusched.control.
#include "support/bindings.hpp"

namespace gpusched::python {

// The parts of the module in other files.
void bind_mig(py::module_& m);
void bind_controller(py::module_& m);
void bind_tenant_admission(py::module_& m);

void bind_control(py::module_& parent) {
    auto m = submodule(parent, "control");
    bind_mig(m);
    bind_controller(m);
    bind_tenant_admission(m);
}

}  // namespace gpusched::python
