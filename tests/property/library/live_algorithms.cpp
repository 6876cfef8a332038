// SPDX-License-Identifier: Apache-2.0
// All algorithms on clusters whose nodes and tasks came and went: slots that nobody has, ids in another order than names,
// domains of other numbers. Results are valid, and equal to a rebuilt cluster's if they do not depend on an order.
#include "support/instances.hpp"
#include "support/membership_world.hpp"
#include "support/plans.hpp"

#include <gpusched/gpusched.hpp>

using namespace gpusched;
using namespace testing_support;

namespace {

void require_vacates(const ClusterSpec& spec, const Cluster& cluster, const Plan& plan) {
    require_valid(spec, cluster, plan);
    const auto after = apply(cluster, plan);
    for (const auto node : plan.vacated_nodes) REQUIRE(after.occupants(node) == 0);
}

}  // namespace

TEST_CASE("Algorithms give the same results on a changed cluster and on a rebuilt one") {
    std::size_t holes = 0, vacated = 0, placed = 0, evicted = 0, allocated = 0;
    for (std::uint64_t seed = 1; seed <= instances<std::uint64_t>(150); ++seed) {
        INFO("seed " << seed);
        Rng rng(seed);
        MembershipWorld world(rng, rng.chance(0.7));
        for (int i = 0; i < 40; ++i) world.step();
        const auto& live = world.live_;
        const auto spec = live.to_spec();
        auto without_budgets = spec;  // which preemption does not look at
        without_budgets.budgets.clear();
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

        for (const auto preset :
             {consolidation::Preset::ipc, consolidation::Preset::fast, consolidation::Preset::best}) {
            consolidation::Options options;
            options.preset = preset;
            options.seed = seed;
            const auto result = consolidation::consolidate(live, options);
            require_vacates(spec, live, result.plan);
            vacated += result.plan.vacated_nodes.size();
        }
        allocation::PlaceOptions best_fit;
        best_fit.rankers = {"best_fit"};
        allocation::PowerOfD two_choices;
        preemption::Options imp;
        imp.policy = preemption::Policy::imp;
        world.live_.keep_events();
        preemption::PreemptionIndex index(imp);
        for (const auto task : live.tasks()) {
            if (live.is_placed(task) || live.task_spec(task).cpu_local)
                continue;  // cores are not accounted for
            const auto same = built.find_task(live.name(task));
            if (const auto found = allocation::place(live, task, best_fit)) {
                REQUIRE(find_obstacle(live, task, found->node) == Obstacle::none);
                REQUIRE(gpus_fit(live, task, found->node, found->gpus));
                ++placed;
            }
            if (const auto found = two_choices(live, task, rng))
                REQUIRE(find_obstacle(live, task, found->node) == Obstacle::none);
            for (const auto policy : {preemption::Policy::spot, preemption::Policy::imp}) {
                preemption::Options options;
                options.policy = policy;
                const auto a = preemption::preempt(live, task, options);
                const auto b = preemption::preempt(built, same, options);
                REQUIRE(a.decision.has_value() == b.decision.has_value());
                if (policy == imp.policy)
                    REQUIRE((index.decide(live, task) != nullptr) == a.decision.has_value());
                if (!a.decision) continue;
                REQUIRE(a.decision->victims.size() == b.decision->victims.size());
                require_vacates(without_budgets, live, preemption::to_plan(*a.decision, task));
                evicted += a.decision->victims.size();
            }
            const std::vector<TaskId> pods{task};
            const auto allocation = allocation::allocate(live, pods);
            require_vacates(spec, live, allocation::to_plan(allocation));
            allocated += allocation.pods.size();
        }
    }
    CHECK(holes > 0);
    CHECK(vacated > 0);
    CHECK(placed > 0);
    CHECK(evicted > 0);
    CHECK(allocated > 0);
}
