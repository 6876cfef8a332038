// SPDX-License-Identifier: Apache-2.0
// What an outside project might write: the whole library in one include, and calls into every component.
#include "other.hpp"

#include <gpusched/gpusched.hpp>

#include <algorithm>
#include <cstdio>
#include <string>

namespace {

/// Calls bodies of each component, so that a shared library is really loaded; the first one that answers wrongly.
const char* wrong_component() {
    using namespace gpusched;
    const Context context;
    Budget budget(context);
    if (budget.exhausted() || printable("a\n") != "a\\x0a") return "core";
    const ClusterSpec spec{.nodes = {{.name = "n", .gpu_count = 2, .cpu_milli = 1'000, .memory_mib = 1'000}}};
    if (io::cluster_from_json(io::cluster_to_json(spec)).nodes.size() != 1) return "io";
    milp::ModelBuilder builder("one");
    builder.column("x", 0, 1, 1, true);
    if (milp::to_lp(builder.finish()).empty()) return "milp";
    if (serving::llama3_8b().parameters() < 7'000'000'000) return "serving";
    if (control::mig_devices().empty()) return "control";
    if (sim::generate_cluster({.nodes = 8}).nodes.size() != 8) return "sim";
    return nullptr;
}

}  // namespace

int main() {
    if (const auto* component = wrong_component()) {
        std::printf("wrong: %s\n", component);
        return 2;
    }
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
