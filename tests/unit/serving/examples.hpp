// SPDX-License-Identifier: Apache-2.0
// Serving problems that several tests use.
#pragma once

#include "support/catch.hpp"

#include <gpusched/serving/serving.hpp>

namespace gpusched::test {

/// Section 4.2 of the paper: three GPU types, two workloads, data parallel or tensor parallel over two t2.
inline serving::ServingProblem worked_example() {
    return {.gpus = {{"t1", 4, 2}, {"t2", 2, 2}, {"t3", 2, 2}},
            .workloads = {{"w1", 80, ""}, {"w2", 20, ""}},
            .configurations = {{"t1", {1, 0, 0}, {1.0, 1.2}, ""},
                               {"t2", {0, 1, 0}, {0.9, 0.9}, ""},
                               {"t3", {0, 0, 1}, {0.3, 0.5}, ""},
                               {"TP(2xt2)", {0, 2, 0}, {2.4, 1.5}, ""}},
            .budget = 8};
}

}  // namespace gpusched::test
