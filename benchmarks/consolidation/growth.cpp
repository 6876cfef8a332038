// SPDX-License-Identifier: Apache-2.0
// Growth of consolidation with the size of the cluster: processor time and memory of `fast`, `best` and the counting bound.
//
//   bench_consolidation_growth [--nodes a,b,...] [--threads a,b,...] [--algorithms fast,best,bound] [--scenario name] [--seed N]
//                              [--smoke]
//
// One line per size, number of threads and algorithm. Processor time is that of all threads of the process, which other work on the machine
// disturbs less than time by the clock; generating the cluster is not counted. Memory is the most that the process has held so far,
// cluster and specification included, so sizes should ascend. Plans are verified unless there are more than 200,000 nodes.
#include "rows.hpp"
#include "scenarios.hpp"

#include <gpusched/consolidation/bound.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/verify/plan.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

using namespace gpusched;
namespace con = gpusched::consolidation;
using bench::split;

namespace {

double processor_s() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double peak_kib() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss);
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> sizes{"37707", "75414", "150828"}, threads{"1", "2"},
        algorithms{"fast", "best", "bound"};
    std::string name = "random.80";
    std::uint64_t seed = 1;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        const auto value = [&]() -> std::string { return ++i < argc ? argv[i] : ""; };
        if (argument == "--nodes")
            sizes = split(value());
        else if (argument == "--threads")
            threads = split(value());
        else if (argument == "--algorithms")
            algorithms = split(value());
        else if (argument == "--scenario")
            name = value();
        else if (argument == "--seed")
            seed = std::strtoull(value().c_str(), nullptr, 10);
        else if (argument == "--smoke")
            sizes = {"500", "1000"};
        else {
            std::cerr << "unknown argument " << argument << '\n';
            return 2;
        }
    }
    const auto* const scenario = std::find_if(std::begin(bench::scenarios), std::end(bench::scenarios),
                                              [&](const auto& s) { return s.name == name; });
    if (scenario == std::end(bench::scenarios)) {
        std::cerr << "unknown scenario " << name << '\n';
        return 2;
    }
    std::printf(
        "| nodes | tasks | threads | algorithm | s | us per node | vacated GPUs | moves | KiB per node |\n"
        "|---|---|---|---|---|---|---|---|---|\n");
    bool all_valid = true;
    for (const auto& size : sizes) {
        const auto nodes = std::atoll(size.c_str());
        const auto spec = scenario->generate(nodes, seed);
        const auto cluster = Cluster::build(spec);
        for (const auto& count : threads) {
            con::Options options{.seed = seed,
                                 .threads = static_cast<std::size_t>(std::atoll(count.c_str())),
                                 .bound_method = con::BoundMethod::none};
            for (const auto& algorithm : algorithms) {
                long long gpus = 0, moves = 0;
                double s = 0;
                const auto start = processor_s();
                if (algorithm == "bound") {
                    gpus = con::bound(cluster, con::BoundMethod::counting, options).vacated_gpus_at_most;
                    s = processor_s() - start;
                } else {
                    options.preset = algorithm == "fast" ? con::Preset::fast : con::Preset::best;
                    const auto result = con::consolidate(cluster, options);
                    s = processor_s() - start;
                    gpus = result.stats.vacated_gpus, moves = result.stats.moves;
                    if (nodes <= 200'000)
                        all_valid = all_valid && verify::plan(spec, to_spec(result.plan, cluster)).ok;
                }
                std::printf("| %lld | %zu | %s | %s | %.3f | %.2f | %lld | %lld | %.2f |\n",
                            static_cast<long long>(nodes), cluster.task_slots(), count.c_str(),
                            algorithm.c_str(), s, s * 1e6 / static_cast<double>(nodes), gpus, moves,
                            peak_kib() / static_cast<double>(nodes));
                std::fflush(stdout);
            }
        }
    }
    return all_valid ? 0 : 1;
}
