// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/core.hpp>

using namespace gpusched;

TEST_CASE("a name table gives ids in order of arrival and finds them again") {
    Rng rng(4);
    NameTable table;
    std::map<std::string, std::uint32_t> expected;
    REQUIRE_FALSE(table.find("").has_value());
    for (int i = 0; i < 5'000; ++i) {
        const auto name = rng.chance(0.01) ? std::string() : "name-" + std::to_string(rng.below(3'000));
        const auto [at, added] = expected.try_emplace(name, static_cast<std::uint32_t>(expected.size()));
        REQUIRE(table.intern(name) == std::pair(at->second, added));
    }
    REQUIRE(table.size() == expected.size());
    for (const auto& [name, id] : expected) {
        REQUIRE(table.find(name) == id);
        REQUIRE(table[id] == name);
    }
    REQUIRE_FALSE(table.find("name").has_value());
    auto moved = std::move(table);
    REQUIRE(moved.find("name-1") == expected.at("name-1"));
}
