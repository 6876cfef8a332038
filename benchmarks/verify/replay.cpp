// SPDX-License-Identifier: Apache-2.0
// Time to check a consolidation plan of a generated ASI-like cluster.
//
//   bench_verify_replay [--smoke]
//
// One JSON line.
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/sim/generator.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string_view>
#include <vector>

int main(int argc, char** argv) {
    using namespace gpusched;
    const bool smoke = argc > 1 && std::string_view(argv[1]) == "--smoke";
    sim::GeneratorOptions cluster_options;
    if (smoke) cluster_options.nodes = 500;
    const auto snapshot = sim::generate_cluster(cluster_options);
    const auto cluster = Cluster::build(snapshot);
    consolidation::Options options;
    options.preset = consolidation::Preset::fast;
    const auto plan = to_spec(consolidation::consolidate(cluster, options).plan, cluster);

    std::vector<double> times;
    bool ok = true;
    for (int run = 0; run < 5; ++run) {
        const auto start = std::clock();  // processor time, which a busy machine disturbs least
        ok = verify::plan(snapshot, plan).ok && ok;
        times.push_back(static_cast<double>(std::clock() - start) * 1e3 / CLOCKS_PER_SEC);
    }
    std::sort(times.begin(), times.end());
    std::printf("{\"nodes\": %zu, \"tasks\": %zu, \"moves\": %zu, \"waves\": %lld, \"ok\": %s, "
                "\"verify_ms\": %.0f}\n",
                snapshot.nodes.size(), snapshot.tasks.size(), plan.moves.size(),
                static_cast<long long>(plan.waves), ok ? "true" : "false", times[times.size() / 2]);
    return ok ? 0 : 1;
}
