// SPDX-License-Identifier: Apache-2.0
// The simulated harvest of Standby GPUs.
#include "support/catch.hpp"

#include <gpusched/sim/sim.hpp>

using namespace gpusched;
using namespace gpusched::sim;

TEST_CASE("about nine tenths of Standby GPU-hours are harvested") {
    const auto a = simulate_harvest({.owners = 200, .days = 5});
    CHECK(a.harvested() > 0.8);
    CHECK(a.harvested() < 1.0);
    CHECK(a.useful_gpu_h + a.lost_gpu_h < a.borrowed_gpu_h + 1e-6);
    CHECK(a.eviction_max_s <= 60);
    CHECK(a.evictions > 100);
    CHECK(a.killed * 20 < a.evictions * 2);
    // The diurnal pattern: nights lend, days do not.
    CHECK(a.standby_by_hour[2] > 10 * a.standby_by_hour[14]);
    const auto same = simulate_harvest({.owners = 200, .days = 5});
    CHECK(same.borrowed_gpu_h == a.borrowed_gpu_h);
    const auto idle = simulate_harvest({.owners = 200, .days = 5, .demand = 0});
    CHECK(idle.harvested() == 0);
    const auto scarce = simulate_harvest({.owners = 200, .days = 5, .demand = 0.3});
    CHECK(scarce.harvested() < 0.5);
}

TEST_CASE("the percentile of eviction times is the nearest rank") {
    // Of fewer than 20 times the 95th percentile is the largest: 95 % of 19 are 18.05, so the 19th.
    int seen = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const auto few = simulate_harvest({.owners = 3, .days = 1, .seed = seed});
        if (few.evictions == 0 || few.evictions > 19) continue;
        CHECK(few.eviction_p95_s == few.eviction_max_s);
        seen += few.eviction_mean_s < few.eviction_max_s ? 1 : 0;
    }
    CHECK(seen > 10);
    const auto many = simulate_harvest({.owners = 200, .days = 5});
    CHECK(many.eviction_p95_s < many.eviction_max_s);
}

TEST_CASE("owners that sleep after midnight lend as well") {
    // Their first night may have ended before the simulation begins; then they sleep in the next one.
    const auto late = simulate_harvest({.owners = 50, .days = 3, .sleep_hour = 2, .wake_hour = 8});
    CHECK(late.standby_gpu_h > 0);
    CHECK(late.standby_by_hour[5] > 10 * late.standby_by_hour[14]);
}

TEST_CASE("a cancelled harvest gives the figures of the time that was simulated") {
    std::stop_source stop;
    stop.request_stop();
    const auto nothing = simulate_harvest({.owners = 100'000, .days = 1000}, {.stop = stop.get_token()});
    CHECK(nothing.stop_reason == StopReason::cancelled);
    CHECK(nothing.standby_gpu_h == 0);
    CHECK(simulate_harvest({.owners = 3, .days = 1}).stop_reason == StopReason::completed);
}

TEST_CASE("options of the harvest out of range are refused") {
    CHECK_THROWS_MESSAGE(simulate_harvest({.task_minutes = INT64_MAX}), InvalidInput,
                         "task_minutes 9223372036854775807 4 1000000000");
    // Each error once.
    CHECK_THROWS_WITH(simulate_harvest({.demand = 11}), Mentions("demand 11 0 10"));
    CHECK_THROWS_MESSAGE(simulate_harvest({.owners = 0}), InvalidInput, "owners 0 1 100000");
    CHECK_THROWS_MESSAGE(simulate_harvest({.sleep_hour = 5, .wake_hour = 4}), InvalidInput,
                         "wake_hour 4 more than sleep_hour");
}
