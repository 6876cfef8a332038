// SPDX-License-Identifier: Apache-2.0
// Compares expected fill with FGD over the whole load curve of the openb lists.
//
// Every list is resampled to 130 % of the GPU capacity with seeds first .. first + N - 1 (default 0 .. 9),
// and both policies get the same tasks. A row is the state when the demand passes 50, 60, ... 130 % of the
// GPUs: allocated GPUs in percent of all, and refused tasks with eight GPUs in percent of those that arrived.
// Values are means, and differences paired by seed with the half widths of their 95 % intervals. --json
// writes one line per run and load. The exit status is 3 without data.
#include "../support/interval.hpp"
#include "../support/rows.hpp"
#include "openb_data.hpp"

#include <gpusched/sim/replay.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace gpusched;
using bench::interval;

constexpr int first_load = 50, last_load = 130, step = 10;
constexpr int large = 8;  // the benchmark counts refusals of tasks with that many GPUs

struct Arguments {
    bench::OpenbData trace{};
    int first = 0;
    std::string placement = "expected_fill", against = "fgd";
};

Arguments parse(int argc, char** argv) {
    bench::CommandLine line("Expected fill against FGD over the whole load curve.", argc, argv);
    Arguments out;
    if (line.smoke()) out.trace.seeds = 2;
    out.trace.options(line);
    line.option("--first", out.first, "first seed")->check(bench::at_least(0));
    line.option("--placement", out.placement, "policy");
    line.option("--against", out.against, "policy to compare with");
    line.read();
    out.trace.require(line.smoke());
    return out;
}

struct Point {
    double allocated = 0;      // percent of all GPUs
    double large_arrived = 0;  // tasks
    double large_refused = 0;  // tasks
    double refused_percent() const { return large_arrived > 0 ? 100 * large_refused / large_arrived : 0; }
};

// One point for each load.
std::vector<Point> run(const Trace& trace, const std::string& placement, std::uint64_t seed,
                       double capacity_milli) {
    const auto result = sim::replay(trace, {.placement = placement, .resample_to = 1.3, .seed = seed});
    const auto& t = result.timeline;
    const auto& tasks = result.cluster.inventory().tasks;
    std::vector<Point> points;
    Point now;
    std::int64_t unplaced = 0;
    // Nothing departs, so that the tasks of the final cluster are the arrivals, in order.
    for (std::size_t i = 0; i < t.size(); ++i) {
        const auto load = first_load + step * static_cast<int>(points.size());
        const auto limit = load / 100.0 * capacity_milli;
        if (load <= last_load && static_cast<double>(t.requested_gpu_milli[i]) > limit) points.push_back(now);
        now.allocated = 100 * static_cast<double>(t.allocated_gpu_milli[i]) / capacity_milli;
        if (tasks.gpu_count[i] == large) {
            ++now.large_arrived;
            now.large_refused += t.unplaced[i] > unplaced ? 1 : 0;
        }
        unplaced = t.unplaced[i];
    }
    // The list ends just below the last load.
    while (static_cast<int>(points.size()) <= (last_load - first_load) / step) points.push_back(now);
    return points;
}

}  // namespace

int main(int argc, char** argv) {
    const auto arguments = parse(argc, argv);
    std::ofstream json;
    if (!arguments.trace.json.empty()) json.open(arguments.trace.json);
    std::printf("%s and %s, seeds %d to %d; allocated GPUs and refused tasks of %d GPUs, in %%; ± is a 95 %% "
                "interval of the "
                "difference, paired by seed.\n\n",
                arguments.against.c_str(), arguments.placement.c_str(), arguments.first,
                arguments.first + arguments.trace.seeds - 1, large);
    std::printf("| list | load | allocated, %s | allocated, %s | difference | refused, %s | refused, %s | "
                "difference |\n"
                "|---|---|---|---|---|---|---|---|\n",
                arguments.against.c_str(), arguments.placement.c_str(), arguments.against.c_str(),
                arguments.placement.c_str());
    for (const auto& list : arguments.trace.lists) {
        const auto trace = arguments.trace.read(list);
        const double capacity_milli = bench::capacity_milli(trace);
        std::vector<std::vector<Point>> theirs, ours;
        for (int s = 0; s < arguments.trace.seeds; ++s) {
            const auto seed = static_cast<std::uint64_t>(arguments.first + s);
            theirs.push_back(run(trace, arguments.against, seed, capacity_milli));
            ours.push_back(run(trace, arguments.placement, seed, capacity_milli));
        }
        for (std::size_t p = 0; p < ours.front().size(); ++p) {
            const int load = first_load + step * static_cast<int>(p);
            const auto column = [&](auto get) {
                std::vector<double> values;
                for (std::size_t s = 0; s < ours.size(); ++s) values.push_back(get(theirs[s][p], ours[s][p]));
                return interval(values);
            };
            using P = const Point&;
            const auto refused = column([](P a, P b) { return b.refused_percent() - a.refused_percent(); });
            const auto allocated = column([](P a, P b) { return b.allocated - a.allocated; });
            std::printf("| %s | %d | %.2f | %.2f | %+.2f ±%.2f | %.1f | %.1f | %+.1f ±%.1f |\n", list.c_str(),
                        load, column([](P a, P) { return a.allocated; }).mean,
                        column([](P, P b) { return b.allocated; }).mean, allocated.mean, allocated.half,
                        column([](P a, P) { return a.refused_percent(); }).mean,
                        column([](P, P b) { return b.refused_percent(); }).mean, refused.mean, refused.half);
            for (std::size_t s = 0; json.is_open() && s < ours.size(); ++s)
                for (const auto* policy : {&theirs, &ours}) {
                    const auto& point = (*policy)[s][p];
                    json << bench::Row{{"list", list},
                                       {"placement",
                                        policy == &ours ? arguments.placement : arguments.against},
                                       {"seed", arguments.first + static_cast<int>(s)},
                                       {"load_pct", load},
                                       {"allocated_pct", point.allocated},
                                       {"large_arrived", point.large_arrived},
                                       {"large_refused", point.large_refused}}
                         << '\n';
                }
        }
    }
    return 0;
}
