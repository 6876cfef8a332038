// SPDX-License-Identifier: Apache-2.0
// How fast snapshots are written, read and built. Prints one JSON line: seconds, the fastest of the rounds each.
//   bench_io_json [--smoke]
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/sim/generator.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

/// The shorter of `best` and the time that `work` takes, in seconds.
template <class Work>
double faster(double best, Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace

int main(int argc, char** argv) {
    gpusched::sim::GeneratorOptions options;
    const bool smoke = argc > 1 && std::string_view(argv[1]) == "--smoke";
    if (smoke) options.nodes = 500;
    const int rounds = smoke ? 1 : 5;
    const auto cluster = gpusched::sim::generate_cluster(options);
    double write = 1e9, read = 1e9, build = 1e9;
    std::string text;
    gpusched::ClusterSpec back;
    for (int round = 0; round < rounds; ++round) {
        write = faster(write, [&] { text = gpusched::io::cluster_to_json(cluster); });
        read = faster(read, [&] { back = gpusched::io::cluster_from_json(text); });
        build = faster(build, [&] { (void)gpusched::Cluster::build(back); });
    }
    std::printf("{\"nodes\": %zu, \"tasks\": %zu, \"bytes\": %zu, \"write_s\": %.3f, \"read_s\": %.3f, "
                "\"build_s\": %.3f, \"same\": %s}\n",
                cluster.nodes.size(), cluster.tasks.size(), text.size(), write, read, build,
                back == cluster ? "true" : "false");
    return back == cluster ? 0 : 1;
}
