// SPDX-License-Identifier: Apache-2.0
// Measures how processor time and memory of `fast`, `best` and the bounds grow with the size of the cluster.
//
// Prints one line per size, number of threads and algorithm. Processor time is the sum over all threads,
// because other work on the machine disturbs it less than elapsed time. Generating the cluster is not
// counted. Memory is the peak during the run: the cluster, without its specification, and the search. For
// verification the specification is generated again, unless the cluster has more than 200,000 nodes.
#include "../support/enumerator.hpp"
#include "../support/memory.hpp"
#include "../support/timing.hpp"
#include "runs.hpp"

#include <gpusched/consolidation/bounds.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/milp/solver.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

using namespace gpusched;
namespace con = gpusched::consolidation;

int main(int argc, char** argv) {
    bench::CommandLine line("Time and memory of consolidation by size of the cluster.", argc, argv);
    std::vector<std::int64_t> sizes{37'707, 75'414, 150'828};
    if (line.smoke()) sizes = {500, 1000};
    std::vector<std::size_t> threads{1, 2};
    const std::vector<std::string> known{"fast", "best", "bound", "lp_bound"};
    std::vector<std::string> algorithms{"fast", "best", "bound"};
    std::string name = "random.80";
    std::uint64_t seed = 1;
    line.option("--nodes", sizes, "sizes of the clusters")->check(bench::at_least(1));
    line.option("--threads", threads, "numbers of threads");
    line.option("--algorithms", algorithms, "algorithms to measure")->check(CLI::IsMember(known));
    line.option("--scenario", name, "kind of cluster")->check(CLI::IsMember(bench::scenario_names(true)));
    line.option("--seed", seed, "seed of the clusters");
    line.read();
    const auto* const scenario = std::find_if(std::begin(bench::scenarios), std::end(bench::scenarios),
                                              [&](const auto& s) { return s.name == name; });
    std::printf(
        "| nodes | tasks | threads | algorithm | s | us per node | vacated GPUs | moves | KiB per node |\n"
        "|---|---|---|---|---|---|---|---|---|\n");
    bool all_valid = true;
    for (const auto nodes : sizes) {
        const auto cluster = Cluster::build(scenario->generate(nodes, seed));
        for (const auto count : threads) {
            con::Options options{
                .seed = seed, .threads = count, .search = {.bound_method = con::BoundMethod::none}};
            for (const auto& algorithm : algorithms) {
                long long gpus = 0, moves = 0;
                con::Result result;
                const bool is_bound = algorithm.ends_with("bound");
                if (!is_bound) options.preset = bench::enumerator<consolidation::Preset>(algorithm);
                const auto method = algorithm == "bound" ? con::BoundMethod::counting : con::BoundMethod::lp;
                bench::forget_peak_memory();
                const auto start = bench::processor_s();
                if (is_bound)
                    gpus = con::bound(cluster, method, options, {.lp = milp::clp()}).vacated_gpus_at_most;
                else
                    result = con::consolidate(cluster, options);
                const auto s = bench::processor_s() - start;
                const auto peak_kib = bench::peak_memory_kib();
                if (!is_bound) {
                    gpus = result.stats.vacated_gpus, moves = result.stats.moves;
                    if (nodes <= 200'000)
                        all_valid =
                            all_valid &&
                            verify::plan(scenario->generate(nodes, seed), to_spec(result.plan, cluster)).ok;
                }
                std::printf("| %lld | %zu | %zu | %s | %.3f | %.2f | %lld | %lld | %.2f |\n",
                            static_cast<long long>(nodes), cluster.task_slots(), count, algorithm.c_str(), s,
                            s * 1e6 / static_cast<double>(nodes), gpus, moves,
                            peak_kib / static_cast<double>(nodes));
                std::fflush(stdout);
            }
        }
    }
    return all_valid ? 0 : 1;
}
