// Shared parts of the bindings of gpusched.milp.
#pragma once

#include "support/arguments.hpp"
#include "support/call.hpp"
#include "support/keywords.hpp"

#include <gpusched/milp/solver.hpp>

namespace gpusched::python {

/// Python arguments of a solver call, in addition to its options.
struct SolverArguments {
    SolverLike solver = "auto";
    ProgressLike progress = py::none();
};
struct SolveArguments : milp::SolveOptions, SolverArguments {};

/// The keywords of the options and of these arguments.
template <class Arguments, Described Options>
Keywords<Arguments> solver_keywords() {
    return Keywords<Arguments>()
        .template fields<Options>()
        .field("solver", &Arguments::solver,
               "'auto', 'highs' (highspy, or the built-in one), 'cbc', 'scipy', or a callable (model, "
               "options) -> dict with status, x, bound. `options['go_on'](nodes)` reports progress; it "
               "returns False when the solver must stop.")
        .field("progress", &Arguments::progress, progress_text);
}

/// @throws InvalidInput for an unknown name; BackendError, which names the package to install
milp::AnySolver solver_argument(const py::object& solver);

}  // namespace gpusched::python
