// SPDX-License-Identifier: Apache-2.0
// Goals of slots against all states that valid plans can reach, on tiny clusters: plans never make more slots, nor as many for less, and
// nearly all goals that can be reached are.
#include "support/exhaustive.hpp"
#include "support/instances.hpp"
#include "support/plans.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/consolidation/consolidation.hpp>

using namespace gpusched;
using testing_support::instances;

namespace {

/// A shape that asks for GPUs, cores, memory or several of them.
SlotShape random_shape(Rng& rng) {
    SlotShape shape{.gpu_count = static_cast<int>(rng.between(0, 4))};
    if (shape.gpu_count == 0 || rng.chance(0.3)) shape.cpu_milli = 1000 * rng.between(1, 6);
    if (rng.chance(0.1)) shape.memory_mib = 1024 * rng.between(1, 4);
    return shape;
}

}  // namespace

TEST_CASE("goals of slots are reached in 94 of 100 tiny clusters with a plan that reaches them") {
    int known = 0;
    struct Count {
        int goals = 0, reached = 0;
        std::int64_t cost = 0, least = 0;
        std::string missed;  // seeds
    } counts[2];
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(1000); ++seed) {
        Rng rng(seed);
        auto how = testing_support::tiny_cluster;
        if (seed % 2 == 1) how.max_request = 4, how.min_tasks = 5;
        if (seed % 4 == 3) how.extras = 0.15;
        const auto spec = testing_support::random_cluster(rng, how);
        const auto shape = random_shape(rng);
        const auto cluster = Cluster::build(spec);
        std::vector<bool> counted(spec.nodes.size());
        for (const auto node : consolidation::goal_nodes(cluster, {.slots = shape}))
            counted[index(node)] = true;
        const auto optimum = testing_support::exhaustive_slots(spec, shape, counted);
        if (!optimum.complete) continue;
        ++known;
        INFO("seed " << seed);
        for (const auto preset : {consolidation::Preset::fast, consolidation::Preset::best}) {
            auto& count = counts[preset == consolidation::Preset::best];
            consolidation::Options options{
                .preset = preset, .threads = 1, .goal = Goal{.slots = shape, .count = 1}};
            const auto before = consolidation::consolidate(cluster, options).stats.goal_before;
            for (options.goal->count = before + 1; *options.goal->count <= optimum.most();
                 ++*options.goal->count) {
                const auto wanted = *options.goal->count;
                const auto found = consolidation::consolidate(cluster, options);
                const auto plan = to_spec(found.plan, cluster);
                INFO("count " << wanted);
                testing_support::require_valid(spec, plan);
                REQUIRE(found.stats.goal_after <= optimum.most());
                REQUIRE(found.stats.relocation_cost >= optimum.least_cost(found.stats.goal_after));
                options.threads = 2;
                REQUIRE(to_spec(consolidation::consolidate(cluster, options).plan, cluster) == plan);
                options.threads = 1;
                ++count.goals;
                if (*found.plan.goal_reached) {
                    ++count.reached;
                    count.cost += found.stats.relocation_cost;
                    count.least += optimum.least_cost(wanted);
                } else {
                    count.missed += " " + std::to_string(seed);
                }
            }
        }
    }
    REQUIRE(known >= instances(990));
    for (const auto& count : counts) {
        INFO((&count == counts ? "fast" : "best")
             << ": " << count.reached << " of " << count.goals << ", at " << count.cost << " where "
             << count.least << " does, missed for seeds" << count.missed);
        REQUIRE(count.goals >= instances(120));
        CHECK(count.reached * 100 >= count.goals * (&count == counts ? 93 : 94));
        CHECK(count.cost * 100 <= count.least * 110);
    }
}
