// SPDX-License-Identifier: Apache-2.0
// Models that several tests use.
#pragma once

#include "support/catch.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/milp/milp.hpp>

namespace gpusched::test {

/// max 10 + 4 a + 5 b + c, 2 a + 3 b + 4 c <= 6, a <= 1; a, b binary, c in 0 .. 2: the optimum is 19.25.
inline milp::Model knapsack() {
    using namespace milp;
    ModelBuilder b("knapsack");
    const int first = b.binary("x a", 4), second = b.binary("x b", 5), third = b.column("x c", 0, 2, 1);
    const Entry weight[] = {{first, 1}, {second, 3}, {third, 4}, {first, 1}};
    const Entry alone[] = {{first, 1}, {second, 0}};
    b.at_most("weight", "weight limit", weight, 6);
    b.row("alone", "a alone", 0, alone, 1);
    b.set_sense(Sense::maximise, 10);
    IndexMap x("x", {3});
    x.columns = {first, second, third};
    b.add_index(x);
    return b.finish();
}

/// Equality knapsacks in several rows (Cornuejols and Dawande): infeasible or hard for branch and bound.
inline milp::Model hard_knapsack(int columns) {
    using namespace milp;
    Rng rng(5);
    ModelBuilder b("hard");
    std::vector<Entry> rows[4];
    double sums[4] = {0, 0, 0, 0};
    for (int j = 0; j < columns; ++j) {
        const int x = b.binary("x" + std::to_string(j), static_cast<double>(rng.between(1, 9)));
        for (int i = 0; i < 4; ++i) {
            rows[i].push_back({x, static_cast<double>(rng.between(0, 99))});
            sums[i] += rows[i].back().value;
        }
    }
    for (int i = 0; i < 4; ++i) {
        const double half = static_cast<double>(static_cast<int>(sums[i] / 2));
        b.equal("half", "half " + std::to_string(i), rows[i], half);
    }
    return b.finish();
}

}  // namespace gpusched::test
