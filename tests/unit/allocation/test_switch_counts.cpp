// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;

namespace {
using C = std::vector<std::int64_t>;
}

TEST_CASE("Algorithm 2 as written is not optimal") {
    // The first step always takes the first switch: the entropy of one part is 0 whatever its size.
    CHECK(entropy_greedy(C{1, 3}, 2) == C{1, 1});
    CHECK(least_entropy(C{1, 3}, 2) == C{0, 2});
    CHECK(entropy_greedy(C{2, 1, 2}, 4) == C{2, 1, 1});
    CHECK(least_entropy(C{2, 1, 2}, 4) == C{2, 0, 2});
    // Equal entropy (1/3 and 2/3 either way): the lower index.
    CHECK(entropy_greedy(C{2, 1, 4}, 3) == C{2, 1, 0});
    CHECK(entropy_greedy(C{2, 4, 1}, 6) == C{2, 4, 0});
}

TEST_CASE("the remainder goes to the tightest switch that holds it") {
    CHECK(least_entropy(C{8, 8, 3, 5}, 11) == C{8, 0, 3, 0});
    CHECK(least_entropy(C{8, 8, 3, 5}, 12) == C{8, 0, 0, 4});
    CHECK(least_entropy(C{9, 4, 6}, 4) == C{0, 4, 0});
    CHECK(least_entropy(C{0, 2, 0}, 2) == C{0, 2, 0});
}

TEST_CASE("all or none, and nothing for no pods") {
    CHECK_FALSE(least_entropy(C{1, 2}, 4));
    CHECK_FALSE(entropy_greedy(C{1, 2}, 4));
    CHECK_FALSE(least_entropy(C{}, 1));
    CHECK(least_entropy(C{}, 0) == C{});
    CHECK(least_entropy(C{3}, 0) == C{0});
    CHECK(entropy_greedy(C{3}, 0) == C{0});
    CHECK_THROWS_MESSAGE(least_entropy(C{3}, -1), InvalidInput, "pods: -1; expected 0");
    CHECK_THROWS_MESSAGE(entropy_greedy(C{3, -2}, 1), InvalidInput, "capacity: -2; expected 0");
    CHECK_THROWS_MESSAGE(least_entropy(C{INT64_MAX, 2}, 1), InvalidInput,
                         "capacity: 9223372036854775807; expected sum below 2^62");
}

TEST_CASE("equal switches are chosen by the entropy further up") {
    const std::vector<std::vector<std::uint32_t>> aggregation{{0, 1, 1, 0, 1}};
    // Two of four equal ones: both below the same aggregation switch.
    CHECK(least_entropy(C{4, 4, 4, 1, 1}, 8, aggregation) == C{0, 4, 4, 0, 0});
    // The remainder follows, though switch 3 is as tight.
    CHECK(least_entropy(C{4, 4, 4, 1, 1}, 9, aggregation) == C{0, 4, 4, 0, 1});
    CHECK(least_entropy(C{4, 4, 4, 1, 1}, 9) == C{4, 4, 0, 1, 0});
    CHECK_THROWS_MESSAGE(least_entropy(C{1, 1}, 1, std::vector<std::vector<std::uint32_t>>{{0}}),
                         InvalidInput, "groups: 1 entries; expected 2");
    CHECK_THROWS_MESSAGE(
        least_entropy(C{1, 1, 1, 1}, 1, std::vector<std::vector<std::uint32_t>>{{0, 0, 1, 1}, {0, 1, 1, 0}}),
        InvalidInput, "overlap");
    CHECK_FALSE(least_entropy(C{1, 1}, 3, std::vector<std::vector<std::uint32_t>>{{0, 0}}));
}
