// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include "model/shared_values.hpp"
#include <gpusched/core/core.hpp>

using namespace gpusched;
using detail::HashIndex;

TEST_CASE("a hash index finds its entries and nothing else, even if hashes collide") {
    for (const std::uint64_t hashes : {1, 3, 40, 1'000'000}) {
        Rng rng(hashes);
        HashIndex index;
        std::map<std::uint32_t, std::uint32_t> in;  // hash by id
        CHECK(index.find(0, [](std::uint32_t) { return true; }) == HashIndex::nothing);
        for (int step = 0; step < 3'000; ++step) {
            const auto id = static_cast<std::uint32_t>(rng.below(200));
            if (const auto found = in.find(id); found != in.end()) {
                index.erase(found->second, id);
                in.erase(found);
            } else {
                // Those at the end of the table go on at its beginning.
                const auto hash = static_cast<std::uint32_t>(rng.below(hashes)) - 2;
                index.insert(hash, id);
                in.emplace(id, hash);
            }
            const auto asked = static_cast<std::uint32_t>(rng.below(200));
            const auto is = [&](std::uint32_t other) { return other == asked; };
            const auto found = in.find(asked);
            const auto hash =
                found != in.end() ? found->second : static_cast<std::uint32_t>(rng.below(hashes)) - 2;
            REQUIRE(index.find(hash, is) == (found != in.end() ? asked : HashIndex::nothing));
            REQUIRE(index.find(hash ^ 0x40000000u, is) == HashIndex::nothing);
        }
    }
}

TEST_CASE("equal values share an index until the last reference is gone; derived fields do not count") {
    std::vector<SpreadRule> rules;
    detail::SharedValues<SpreadRule> shared(rules);
    SpreadRule rule;
    rule.max_skew = 2;
    rule.node_selector = {{"zone", "a"}, {"rack", "b"}};
    const auto [first, added] = shared.acquire(rule);
    CHECK(added);
    rule.domains = 7;
    rule.eligible = {true};
    CHECK(shared.acquire(rule) == std::pair(first, false));
    rule.node_selector["rack"] = "c";
    const auto [second, another] = shared.acquire(rule);
    CHECK(another);
    CHECK(second != first);
    CHECK(shared.is_shared(first));
    CHECK_FALSE(shared.release(first));
    CHECK(shared.release(first));
    CHECK(rules[first].node_selector.empty());
    rule.node_selector = {{"zone", "a"}, {"rack", "b"}};
    CHECK(shared.acquire(rule) == std::pair(first, true));
}
