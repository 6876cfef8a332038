// SPDX-License-Identifier: Apache-2.0
// Reads a snapshot, plans which nodes to vacate, has the plan checked, and says how good it is.
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/sim/generator.hpp>
#include <gpusched/verify/plan.hpp>

#include <cstdio>

int main(int argc, char** argv) {
    const auto snapshot = argc > 1 ? gpusched::io::read_cluster(argv[1])
                                   : gpusched::sim::generate_cluster({.preset = "asi", .nodes = 2000});
    const auto cluster = gpusched::Cluster::build(snapshot);
    const auto result = gpusched::consolidation::consolidate(cluster);
    const auto check = gpusched::verify::plan(snapshot, gpusched::to_spec(result.plan, cluster));
    std::printf("%lld moves in %u waves vacate %lld GPUs; no plan can vacate more than %lld; %s\n",
                static_cast<long long>(result.stats.moves), result.plan.waves,
                static_cast<long long>(result.stats.vacated_gpus),
                static_cast<long long>(result.plan.bound.vacated_gpus_at_most),
                check.ok ? "verified" : "NOT VALID");
    return check.ok ? 0 : 1;
}
