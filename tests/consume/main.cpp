// SPDX-License-Identifier: Apache-2.0
// What an outside project might write: the whole library in one include, and a call into a compiled body.
#include "other.hpp"

#include <gpusched/gpusched.hpp>

#include <algorithm>
#include <cstdio>

int main() {
    const gpusched::Context context;
    gpusched::Budget budget(context);  // defined in the compiled library, unless header-only
    if (budget.exhausted()) return 2;
#ifdef EXPECT_LP
    if ((gpusched::milp::clp() != nullptr) != (EXPECT_LP != 0)) return 3;
    if (EXPECT_LP != 0) {  // minimise x subject to 2 <= x <= 9
        const auto solved = gpusched::milp::clp()->solve({.column_start = {0, 0},
                                                          .row_index = {},
                                                          .value = {},
                                                          .objective = {1},
                                                          .column_lower = {2},
                                                          .column_upper = {9},
                                                          .row_lower = {},
                                                          .row_upper = {}});
        if (solved.status != gpusched::LpStatus::optimal) return 4;
    }
#endif
#ifdef EXPECT_HIGHS
    const auto solvers = gpusched::milp::available_solvers();
    if ((std::find(solvers.begin(), solvers.end(), "highs") != solvers.end()) != (EXPECT_HIGHS != 0))
        return 5;
    if (EXPECT_HIGHS != 0) {  // minimise a whole x in 1.5 .. 9
        gpusched::milp::ModelBuilder builder("one");
        builder.column("x", 1.5, 9, 1, true);
        const auto solved = gpusched::milp::solve(builder.finish(), {}, "highs");
        if (solved.status != gpusched::milp::Status::optimal || solved.objective != 2) return 6;
    }
#endif
    std::printf("%s\n", gpusched::version);
    return other_version() == gpusched::version ? 0 : 1;
}
