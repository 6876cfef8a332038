// SPDX-License-Identifier: Apache-2.0
// Measures the time to check a consolidation plan of a generated ASI-like cluster. Prints one JSON line.
#include "../support/command_line.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/sim/generator.hpp>
#include <gpusched/verify/plan.hpp>

#include <vector>

using namespace gpusched;

int main(int argc, char** argv) {
    bench::CommandLine line("Time to check a consolidation plan of a generated ASI-like cluster.", argc,
                            argv);
    line.read();
    sim::GeneratorOptions cluster_options;
    if (line.smoke()) cluster_options.nodes = 500;
    const auto snapshot = sim::generate_cluster(cluster_options);
    const auto cluster = Cluster::build(snapshot);
    consolidation::Options options;
    options.preset = consolidation::Preset::fast;
    const auto plan = to_spec(consolidation::consolidate(cluster, options).plan, cluster);

    std::vector<double> times;
    bool ok = true;
    for (int run = 0; run < 5; ++run) {
        const double start = bench::processor_s();
        ok = verify::plan(snapshot, plan).ok && ok;
        times.push_back(1e3 * (bench::processor_s() - start));
    }
    bench::print({{"nodes", snapshot.nodes.size()},
                  {"tasks", snapshot.tasks.size()},
                  {"moves", plan.moves.size()},
                  {"waves", plan.waves},
                  {"ok", ok},
                  {"verify_ms", bench::rounded(bench::median(times), 0)}});
    return ok ? 0 : 1;
}
