// SPDX-License-Identifier: Apache-2.0
// Repeats the published placement comparison on the openb trace: allocated GPUs and fragmentation of every
// policy on four lists.
//
// Every list is resampled to 130 % of the GPU capacity with seeds 0 .. N - 1 (default 10), and all policies
// get the same tasks. The table has means and half widths of 95 % intervals over the seeds, the published
// means, paired differences to FGD, and tasks per second of CPU time. --json writes one line per run. The
// exit status is 3 without data.
#include "../support/interval.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"
#include "openb_data.hpp"
#include "published_table.hpp"

#include <gpusched/sim/replay.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace gpusched;
using bench::interval;

struct Run {
    double allocated_100, allocated_130, fragmented_100, fragmented_130;  // percent of all GPUs
    double tasks, cpu_s;
};

struct Arguments {
    bench::OpenbData trace{};
    std::vector<std::string> placements{"random",   "dot_product", "gpu_clustering", "gpu_packing",
                                        "best_fit", "fgd",         "expected_fill"};
};

Arguments parse(int argc, char** argv) {
    bench::CommandLine line("The published placement comparison on the openb trace.", argc, argv);
    Arguments out;
    if (line.smoke()) out.trace.seeds = 1;
    out.trace.options(line);
    line.option("--placement", out.placements, "policies");
    line.read();
    out.trace.require(line.smoke());
    return out;
}

Run run_once(const Trace& trace, const std::string& placement, std::uint64_t seed, double capacity_milli) {
    const double start = bench::processor_s();
    const auto result = sim::replay(trace, {.placement = placement, .resample_to = 1.3, .seed = seed});
    const double cpu_s = bench::processor_s() - start;
    const auto& t = result.timeline;
    // The last arrival before the demand passes the capacity.
    const auto at_100 =
        static_cast<std::size_t>(std::upper_bound(t.requested_gpu_milli.begin(), t.requested_gpu_milli.end(),
                                                  static_cast<std::int64_t>(capacity_milli)) -
                                 t.requested_gpu_milli.begin()) -
        1;
    const auto allocated = [&](std::size_t i) {
        return 100 * static_cast<double>(t.allocated_gpu_milli[i]) / capacity_milli;
    };
    const auto fragmented = [&](std::size_t i) { return 100'000 * t.fragmented_gpus[i] / capacity_milli; };
    return {allocated(at_100),        allocated(t.size() - 1),       fragmented(at_100),
            fragmented(t.size() - 1), static_cast<double>(t.size()), cpu_s};
}

template <class Get>
std::vector<double> column(const std::vector<Run>& runs, Get get) {
    std::vector<double> out;
    for (const auto& run : runs) out.push_back(get(run));
    return out;
}

void print_row(const std::string& list, const std::string& placement, const std::vector<Run>& runs,
               const std::vector<Run>* fgd) {
    const auto a100 = interval(column(runs, [](const Run& r) { return r.allocated_100; }));
    const auto a130 = interval(column(runs, [](const Run& r) { return r.allocated_130; }));
    const auto f100 = interval(column(runs, [](const Run& r) { return r.fragmented_100; }));
    const auto f130 = interval(column(runs, [](const Run& r) { return r.fragmented_130; }));
    double tasks = 0, cpu_s = 0;
    for (const auto& run : runs) tasks += run.tasks, cpu_s += run.cpu_s;
    std::printf("%-11s %-14s %6.2f ±%.2f %6.2f ±%.2f", list.c_str(), placement.c_str(), a100.mean, a100.half,
                a130.mean, a130.half);
    const auto published = find_published(published_allocation, list, placement);
    if (published)
        std::printf("  %6.2f %6.2f", published->at_100, published->at_130);
    else
        std::printf("  %6s %6s", "", "");
    std::printf("  %5.2f %5.2f", f100.mean, f130.mean);
    if (const auto f = find_published(published_fragmentation, list, placement))
        std::printf("  (%5.2f %5.2f)", f->at_100, f->at_130);
    else
        std::printf("  %13s", "");
    std::printf("  %7.0f", tasks / cpu_s);
    if (fgd != nullptr && fgd != &runs) {
        std::vector<double> d100, d130;
        for (std::size_t s = 0; s < runs.size(); ++s) {
            d100.push_back(runs[s].allocated_100 - (*fgd)[s].allocated_100);
            d130.push_back(runs[s].allocated_130 - (*fgd)[s].allocated_130);
        }
        const auto p100 = interval(d100), p130 = interval(d130);
        std::printf("  %+6.2f ±%.2f %+6.2f ±%.2f", p100.mean, p100.half, p130.mean, p130.half);
    }
    std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
    const auto arguments = parse(argc, argv);
    std::ofstream json;
    if (!arguments.trace.json.empty()) json.open(arguments.trace.json);

    std::printf("Allocated GPUs in %% of all, when the demand passes 100 %% and at 130 %%; %d seeds, ± is a "
                "95 %% interval.\n",
                arguments.trace.seeds);
    std::printf("%-11s %-14s %12s %12s  %13s  %11s  %13s  %7s  %s\n", "list", "placement", "at 100 %",
                "at 130 %", "published", "fragmented", "(published)", "tasks/s", "minus FGD, paired");
    double worst = 0;
    for (const auto& list : arguments.trace.lists) {
        const auto trace = arguments.trace.read(list);
        const double capacity_milli = bench::capacity_milli(trace);
        std::map<std::string, std::vector<Run>> runs;
        for (const auto& placement : arguments.placements)
            for (int seed = 0; seed < arguments.trace.seeds; ++seed) {
                const auto run = run_once(trace, placement, static_cast<std::uint64_t>(seed), capacity_milli);
                runs[placement].push_back(run);
                if (json.is_open())
                    json << bench::Row{{"list", list},
                                       {"placement", placement},
                                       {"seed", seed},
                                       {"allocated_pct_100", run.allocated_100},
                                       {"allocated_pct_130", run.allocated_130},
                                       {"fragmented_pct_100", run.fragmented_100},
                                       {"fragmented_pct_130", run.fragmented_130},
                                       {"tasks", run.tasks},
                                       {"cpu_s", run.cpu_s}}
                         << '\n';
            }
        const auto* fgd = runs.contains("fgd") ? &runs["fgd"] : nullptr;
        for (const auto& placement : arguments.placements) {
            print_row(list, placement, runs[placement], fgd);
            if (const auto cell = find_published(published_allocation, list, placement)) {
                const auto gap = [&](double published, auto get) {
                    return std::abs(interval(column(runs[placement], get)).mean - published);
                };
                worst = std::max({worst, gap(cell->at_100, [](const Run& r) { return r.allocated_100; }),
                                  gap(cell->at_130, [](const Run& r) { return r.allocated_130; })});
            }
        }
    }
    std::printf("largest difference to a published cell: %.2f points\n", worst);
    return 0;
}
