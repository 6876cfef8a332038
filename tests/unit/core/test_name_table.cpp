// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/name_table.hpp>
#include <gpusched/core/rng.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

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

#if defined(GPUSCHED_CHECKED) || !defined(NDEBUG)
TEST_CASE("what cannot be is caught where assertions are on") {
    ClusterSpec spec;
    spec.nodes = {{.name = "n", .gpu_count = 2, .cpu_milli = 4'000, .memory_mib = 10}};
    spec.tasks = {{.name = "t", .cpu_milli = 1'000, .gpu_count = 1}};
    auto c = Cluster::build(spec);
    const NodeId no_node{1};
    const TaskId t{0}, no_task{1};
    CHECK_FALSE(testing_support::aborts([&] { c.assign(t, n, 0b01); }));
    CHECK(testing_support::aborts([&] { (void)c.node_of(no_task); }));
    CHECK(testing_support::aborts([&] { (void)c.cpu_free_milli(no_node); }));
    CHECK(testing_support::aborts([&] { (void)c.gpu_free_milli(n, 2); }));
    CHECK(testing_support::aborts([&] { (void)c.gpu_free_milli(n, -1); }));
    CHECK(testing_support::aborts([&] { (void)c.gpu_memory_free_mib(n, 2); }));
    CHECK(testing_support::aborts([&] { (void)c.tasks_on(no_node); }));
    CHECK(testing_support::aborts([&] { c.assign(no_task, n, 0b01); }));
    CHECK(testing_support::aborts([&] { c.assign(t, no_node, 0b01); }));
    CHECK(testing_support::aborts([&] { c.assign(t, n, 0b100); }));
    CHECK(testing_support::aborts([&] { c.assign(t, n, 0b11); }));
    CHECK(testing_support::aborts([&] { c.unreserve(t, n, 0b01); }));  // nothing was reserved
    CHECK(testing_support::aborts([&] { c.undo(); }));
    CHECK(testing_support::aborts([&] { c.rollback(1); }));
    CHECK(testing_support::aborts([&] { (void)c.group_count(0, DomainId{0}); }));
    CHECK(testing_support::aborts([&] { (void)c.group_domains(0); }));
}
#endif
