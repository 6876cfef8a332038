// What the binding units of gpusched.milp share.
#pragma once

#include "arguments.hpp"
#include "call.hpp"
#include "keywords.hpp"

#include <gpusched/milp/solver.hpp>

namespace gpusched::python {

/// Solve options in Python, and what the surroundings give.
struct SolveArguments : milp::SolveOptions {
    SolverLike solver = "auto";
    ProgressLike progress = py::none();
};

Keywords<SolveArguments> solve_keywords();
/// @throws InvalidInput for an unknown name, BackendError that says what to install
milp::AnySolver solver_argument(const py::object& solver);

void bind_milp_builders(py::module_& m);
void bind_milp_jobs(py::module_& m);

}  // namespace gpusched::python
