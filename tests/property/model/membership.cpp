// SPDX-License-Identifier: Apache-2.0
// Random changes of membership: after each, the cluster is what `build` makes of the same data, and a change that `build`
// would refuse is refused and changes nothing.
#include "support/instances.hpp"
#include "support/membership_world.hpp"

using namespace gpusched;
using namespace testing_support;

TEST_CASE("After every change of membership the cluster equals one built from the same data") {
    const auto wanted = instances<std::size_t>(6000);
    std::size_t steps = 0, refusals = 0;
    ChangeStatistics slow;
    for (std::uint64_t seed = 1; steps < wanted; ++seed) {
        INFO("seed " << seed);
        Rng rng(seed);
        MembershipWorld world(rng, rng.chance(0.5));
        for (int i = 0; i < 200; ++i) world.step();
        steps += world.steps_;
        refusals += world.refusals_;
        slow.regroupings += world.live_.inventory().changes.regroupings;
        slow.reclassifications += world.live_.inventory().changes.reclassifications;
        slow.resources += world.live_.inventory().changes.resources;
        slow.budgets += world.live_.inventory().changes.budgets;
        slow.levels += world.live_.inventory().changes.levels;
        slow.copies += world.live_.inventory().changes.copies;
    }
    // Every way of changing was taken.
    CHECK(refusals > steps / 50);
    CHECK(slow.regroupings > 0);
    CHECK(slow.reclassifications > 0);
    CHECK(slow.resources > 0);
    CHECK(slow.budgets > 0);
    CHECK(slow.levels > 0);
    CHECK(slow.copies > 0);
}
