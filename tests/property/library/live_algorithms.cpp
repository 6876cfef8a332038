// SPDX-License-Identifier: Apache-2.0
// All algorithms on clusters whose nodes and tasks came and went: slots that nobody has, ids in another order than names,
// domains of other numbers. Results are valid, and equal to a rebuilt cluster's if they do not depend on an order.
#include "algorithms.hpp"
#include "support/instances.hpp"
#include "support/membership_world.hpp"

using namespace gpusched;
using namespace testing_support;

TEST_CASE("Algorithms give the same results on a changed cluster and on a rebuilt one") {
    std::size_t holes = 0;
    Seen seen;
    for (std::uint64_t seed = 1; seed <= instances<std::uint64_t>(150); ++seed) {
        INFO("seed " << seed);
        Rng rng(seed);
        MembershipWorld world(rng, rng.chance(0.7));
        for (int i = 0; i < 40; ++i) world.step();
        const auto& live = world.live_;
        const auto spec = live.to_spec();
        const auto built = Cluster::build(spec);
        holes += (live.node_slots() - live.node_count()) + (live.task_slots() - live.task_count());

        // Order does not matter to these.
        const auto here = fragmentation::report(live), there = fragmentation::report(built);
        REQUIRE(here == there);
        REQUIRE(fragmentation::allocation_ratio(live) == fragmentation::allocation_ratio(built));
        REQUIRE(fragmentation::fragment_rate(live) == fragmentation::fragment_rate(built));
        REQUIRE(fragmentation::occupancy(live) == fragmentation::occupancy(built));
        const auto workload = fragmentation::typical_workload(live);
        REQUIRE(workload.total_weight() == fragmentation::typical_workload(built).total_weight());
        if (!workload.shapes.empty())
            REQUIRE(fragmentation::fgd(live, workload) == Catch::Approx(fragmentation::fgd(built, workload)));
        for (const bool slots : {false, true}) {
            std::int64_t sum[2] = {0, 0};
            for (int i = 0; i < 2; ++i) {
                const auto& cluster = i == 0 ? live : built;
                if (slots)
                    for (const auto& row : fragmentation::switch_slots(cluster)) sum[i] += row.within;
                else
                    for (const auto& row : fragmentation::largest_job(cluster))
                        sum[i] += row.across + row.within;
            }
            REQUIRE(sum[0] == sum[1]);
        }
        REQUIRE(topology::NetworkTree(live.inventory()).node_count() >= live.node_count());

        Algorithms(spec, world.live_, seed, seen).check_all();
        for (const auto task : live.tasks()) {
            if (live.is_placed(task) || live.task_spec(task).cpu_local) continue;
            for (const auto policy : {preemption::Policy::spot, preemption::Policy::imp}) {
                const auto a = preemption::preempt(live, task, {.policy = policy});
                const auto b =
                    preemption::preempt(built, built.find_task(live.name(task)), {.policy = policy});
                REQUIRE(a.decision.has_value() == b.decision.has_value());
                if (a.decision) REQUIRE(a.decision->victims.size() == b.decision->victims.size());
            }
        }
    }
    CHECK(holes > 0);
    for (const char* kind : {"vacated", "placed", "evicted", "allocated"}) {
        INFO(kind);
        CHECK(seen[kind] > 0);
    }
}
