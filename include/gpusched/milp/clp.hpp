// SPDX-License-Identifier: Apache-2.0
// clp: the solver Clp of linear programs, for algorithms that take one (Context::lp).
#pragma once

#include <gpusched/core/lp.hpp>

namespace gpusched::milp {

/// The solver Clp: `const Context context{.lp = milp::clp()};`. nullptr where the library was built without Clp.
///
/// Install Clp (Debian, Ubuntu: apt-get install coinor-libclp-dev) and configure with -DGPUSCHED_WITH_CLP=ON; with the
/// headers alone and without CMake, define GPUSCHED_HAS_CLP and link Clp and CoinUtils. Deterministic as long as no time
/// limit strikes.
[[nodiscard]] const LpSolver* clp() noexcept;

}  // namespace gpusched::milp
