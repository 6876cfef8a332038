// SPDX-License-Identifier: Apache-2.0
// What needs a solver is left out in builds without one.
#pragma once

#include "support/catch.hpp"

#include <gpusched/milp/solver.hpp>

namespace testing_support {

/// Is no solver built in? Says so.
inline bool lacks_solver() {
    const bool lacks = gpusched::milp::available_solvers().empty();
    if (lacks) WARN("no solver: not checked");
    return lacks;
}

}  // namespace testing_support
