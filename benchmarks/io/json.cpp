// SPDX-License-Identifier: Apache-2.0
// Measures how fast snapshots are written, read and built. Prints one JSON line with the fastest round of
// each, in seconds.
#include "../support/command_line.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/io/cluster_json.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/sim/generator.hpp>

#include <algorithm>
#include <string>

using namespace gpusched;

int main(int argc, char** argv) {
    bench::CommandLine line("How fast snapshots are written, read and built.", argc, argv);
    line.read();
    sim::GeneratorOptions options;
    if (line.smoke()) options.nodes = 500;
    const int rounds = line.smoke() ? 1 : 5;
    const auto cluster = sim::generate_cluster(options);
    double write = 1e9, read = 1e9, build = 1e9;
    std::string text;
    ClusterSpec back;
    for (int round = 0; round < rounds; ++round) {
        write = std::min(write, bench::seconds([&] { text = io::cluster_to_json(cluster); }));
        read = std::min(read, bench::seconds([&] { back = io::cluster_from_json(text); }));
        build = std::min(build, bench::seconds([&] { static_cast<void>(Cluster::build(back)); }));
    }
    bench::print({{"nodes", cluster.nodes.size()},
                  {"tasks", cluster.tasks.size()},
                  {"bytes", text.size()},
                  {"write_s", bench::rounded(write, 3)},
                  {"read_s", bench::rounded(read, 3)},
                  {"build_s", bench::rounded(build, 3)},
                  {"same", back == cluster}});
    return back == cluster ? 0 : 1;
}
