// SPDX-License-Identifier: Apache-2.0
// What an outside project might write: the whole library in one include, and a call into a compiled body.
#include "other.hpp"

#include <gpusched/gpusched.hpp>

#include <cstdio>

int main() {
    const gpusched::Context context;
    gpusched::Budget budget(context);  // defined in the compiled library, unless header-only
    if (budget.exhausted()) return 2;
#ifdef EXPECT_LP
    if (gpusched::lp_available() != (EXPECT_LP != 0)) return 3;
    if (EXPECT_LP != 0) {  // minimise x subject to 2 <= x <= 9
        const auto solved = gpusched::solve_lp({.column_start = {0, 0},
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
    std::printf("%s\n", gpusched::version);
    return other_version() == gpusched::version ? 0 : 1;
}
