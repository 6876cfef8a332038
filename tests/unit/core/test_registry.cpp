// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/core.hpp>

using namespace gpusched;

namespace {

using AnyRule = std::function<int(int)>;
struct Double {
    int operator()(int x) const { return 2 * x; }
};

Registry<AnyRule, int> rules() {
    Registry<AnyRule, int> registry("rule");
    registry.add<Double>("double");
    registry.add("add", [](int by) { return [by](int x) { return x + by; }; });
    return registry;
}

}  // namespace

TEST_CASE("a registry makes policies by name from their arguments") {
    const auto registry = rules();
    CHECK(registry.names() == std::vector<std::string>{"double", "add"});
    CHECK(registry.make("double", 5)(4) == 8);
    CHECK(registry.make("add", 5)(4) == 9);
    CHECK(registry.contains("add"));
    CHECK_FALSE(registry.contains("subtract"));
}

TEST_CASE("a copy of a registry takes policies of one's own, under names that are free") {
    auto registry = rules();
    registry.add("zero", [](int) { return [](int) { return 0; }; });
    CHECK(registry.make("zero", 1)(7) == 0);
    struct Times {
        int factor;
        int operator()(int x) const { return factor * x; }
    };
    Registry<std::function<int(int)>> objects("rule");
    objects.add("thrice", Times{3});  // a policy as it is, with what it holds
    CHECK(objects.make("thrice")(5) == 15);
    REQUIRE_THROWS_MESSAGE(registry.add<Double>("add"), InvalidInput, "rule 'add' not taken");
    REQUIRE_THROWS_MESSAGE(registry.add<Double>(""), InvalidInput, "rule '' not taken");
    CHECK(registry.names().size() == 3);
}

TEST_CASE("an unknown name is answered by the nearest one") {
    REQUIRE_THROWS_MESSAGE(rules().make("doubel", 1), InvalidInput,
                           "rule 'doubel' one of double add mean 'double'");
}
