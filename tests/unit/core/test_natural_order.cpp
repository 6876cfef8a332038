// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/natural_order.hpp>
#include <gpusched/core/rng.hpp>

#include <algorithm>
#include <string>
#include <vector>

using gpusched::comes_before;

TEST_CASE("natural order: numbers in names compare as numbers, all else byte by byte") {
    const std::vector<std::string> sorted{"",     "0",     "00", "01",  "1",     "2",     "10",
                                          "A",    "a",     "a-", "a-2", "a-10",  "a-10b", "a-010c",
                                          "a1b9", "a1b10", "a2", "a10", "a10-1", "b",     "\xC3\xA4"};
    for (std::size_t a = 0; a < sorted.size(); ++a)
        for (std::size_t b = 0; b < sorted.size(); ++b) {
            INFO(sorted[a] << " and " << sorted[b]);
            CHECK(comes_before(sorted[a], sorted[b]) == (a < b));
        }
    // Longer than any integer type.
    CHECK(comes_before("n99999999999999999999999999999999", "n100000000000000000000000000000000"));
    STATIC_REQUIRE(comes_before("gpu-9", "gpu-10"));
}

TEST_CASE("natural order: a strict total order of random names") {
    gpusched::Rng rng(1);
    static constexpr char letters[] = "0012ab-";
    for (int i = 0; i < 20'000; ++i) {
        std::string names[3];
        for (auto& name : names)
            for (auto length = rng.below(6); length > 0; --length) name += letters[rng.below(7)];
        const auto& [a, b, c] = names;
        INFO(a << ", " << b << ", " << c);
        REQUIRE(comes_before(a, b) + comes_before(b, a) == (a == b ? 0 : 1));
        if (comes_before(a, b) && comes_before(b, c)) REQUIRE(comes_before(a, c));
    }
}
