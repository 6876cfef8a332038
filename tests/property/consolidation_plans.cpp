// SPDX-License-Identifier: Apache-2.0
// 10,000 random small clusters: the checker accepts every plan of every preset, and applying it agrees.
#include "support/catch.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/model/apply.hpp>
#include <gpusched/verify/plan.hpp>

using namespace gpusched;

TEST_CASE("every plan is valid and leads to what it claims") {
    using consolidation::Preset;
    std::int64_t vacated = 0, moves = 0, later_waves = 0;
    for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
        Rng rng(seed);
        const auto spec = testing_support::random_cluster(rng);
        const auto cluster = Cluster::build(spec);
        for (const auto preset : {Preset::ipc, Preset::fast, Preset::best}) {
            INFO("seed " << seed << ", preset " << consolidation::to_string(preset));
            consolidation::Options options;
            options.preset = preset;
            options.seed = seed;
            options.partition_size = 4;
            const auto result = consolidation::consolidate(cluster, options);
            const auto plan = to_spec(result.plan, cluster);
            const auto report = verify::plan(spec, plan);
            INFO((report.ok ? "" : report.violations.front()));
            REQUIRE(report.ok);
            REQUIRE(report.vacated_gpus == result.stats.vacated_gpus);
            REQUIRE(report.vacated_nodes == plan.vacated_nodes);
            const auto after = apply(cluster, result.plan);
            for (const auto node : result.plan.vacated_nodes) REQUIRE(after.occupants(node) == 0);
            vacated += static_cast<std::int64_t>(report.vacated_nodes.size());
            moves += static_cast<std::int64_t>(plan.moves.size());
            later_waves += plan.waves > 1 ? 1 : 0;
        }
    }
    // Enough happens for the above to mean something.
    REQUIRE(vacated > 5'000);
    REQUIRE(moves > vacated);
    REQUIRE(later_waves > 100);
}
