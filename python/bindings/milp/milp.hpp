// What the binding units of gpusched.milp share.
#pragma once

#include "support/arguments.hpp"
#include "support/call.hpp"
#include "support/keywords.hpp"

#include <gpusched/milp/solver.hpp>

namespace gpusched::python {

/// What a call of a solver takes in Python besides its options.
struct SolverArguments {
    SolverLike solver = "auto";
    ProgressLike progress = py::none();
};
struct SolveArguments : milp::SolveOptions, SolverArguments {};

/// The keywords of the options' table, and those.
template <class Arguments, Described Options>
Keywords<Arguments> solver_keywords() {
    return Keywords<Arguments>()
        .template fields<Options>()
        .field("solver", &Arguments::solver,
               "'auto', 'highs' (highspy, or the one built in), 'cbc', 'scipy', or a callable (model, "
               "options) -> dict with status, x, bound. `options['go_on'](nodes)` reports progress, and is "
               "False once the call shall end.")
        .field("progress", &Arguments::progress, progress_text);
}

/// @throws InvalidInput for an unknown name, BackendError that says what to install
milp::AnySolver solver_argument(const py::object& solver);

}  // namespace gpusched::python
