// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/core.hpp>

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

TEST_CASE("natural order: a list in order, equal names as they were") {
    const std::vector<std::string_view> names{"n10", "n2", "n02", "n2", "m", "n", ""};
    CHECK(gpusched::natural_order(names) == std::vector<std::size_t>{6, 4, 5, 2, 1, 3, 0});
    CHECK(gpusched::natural_order({}).empty());
    // Numbers beyond the key, and bytes that no text has.
    const std::vector<std::string_view> odd{"7200000000000000000000",
                                            "72057594037927936",
                                            "72057594037927935",
                                            std::string_view("\0", 1),
                                            "\xFF",
                                            "/",
                                            ":"};
    CHECK(gpusched::natural_order(odd) == std::vector<std::size_t>{3, 5, 2, 1, 0, 6, 4});
}

TEST_CASE("natural order: lists of random names are in the order of the comparison") {
    gpusched::Rng rng(2);
    static constexpr char letters[] = "0129ab-\0\xC3";
    for (int i = 0; i < 2000; ++i) {
        const std::string beginning(rng.below(3), "n1-"[rng.below(3)]);
        std::vector<std::string> names(1 + rng.below(40));
        for (auto& name : names) {
            name = beginning;
            for (auto length = rng.below(i % 2 == 0 ? 12 : 4); length > 0; --length)
                name += letters[rng.below(9)];
        }
        std::vector<std::size_t> expected;
        for (std::size_t n = 0; n < names.size(); ++n) expected.push_back(n);
        std::stable_sort(expected.begin(), expected.end(),
                         [&](std::size_t a, std::size_t b) { return comes_before(names[a], names[b]); });
        const std::vector<std::string_view> views(names.begin(), names.end());
        REQUIRE(gpusched::natural_order(views) == expected);
    }
}
