// SPDX-License-Identifier: Apache-2.0
// What the presets are held to: shares of the LP bound by scenario, nodes that are not full, and memory. Moves are judged by the frontier
// (bench_consolidation_frontier): of plans that vacate more, moves per node say nothing.
#pragma once

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace gpusched::bench {

/// Means over the seeds of one scenario and algorithm, by column of the summary.
using Means = std::map<std::pair<std::string, std::string>, std::map<std::string, double>>;

/// Prints every gate with what was measured. Gates of runs that are not there are left out, and said to be.
/// @return how many were missed
inline int check_gates(const Means& means) {
    struct Share {
        const char *scenario, *algorithm;
        double nodes, gpus;
    };
    static constexpr Share shares[] = {{"random.80", "fast", 95, 97}, {"random.80", "best", 95.5, 98},
                                       {"spread.80", "fast", 93, 92}, {"spread.80", "best", 97, 98.5},
                                       {"packed.80", "fast", 89, 95}, {"packed.80", "best", 91, 96},
                                       {"cpu-tight", "fast", 85, 90}, {"cpu-tight", "best", 86.5, 91.5},
                                       {"random.90", "fast", 93, 95}, {"random.90", "best", 94, 95.5}};
    int missed = 0, left_out = 0;
    const auto gate = [&](const std::string& what, double value, bool at_least, double limit) {
        const bool ok = at_least ? value >= limit : value <= limit;
        missed += ok ? 0 : 1;
        std::printf("%-46s %7.2f  %s %7.2f  %s\n", what.c_str(), value, at_least ? ">=" : "<=", limit,
                    ok ? "ok" : "MISSED");
    };
    std::printf("\n");
    for (const auto& share : shares) {
        const auto run = means.find({share.scenario, share.algorithm});
        if (run == means.end()) {
            ++left_out;
            continue;
        }
        const auto name = std::string(share.algorithm) + " " + share.scenario + ": ";
        gate(name + "nodes, % of the bound", run->second.at("nodes_percent"), true, share.nodes);
        gate(name + "GPUs, % of the bound", run->second.at("gpus_percent"), true, share.gpus);
        if (std::string(share.scenario) != "cpu-tight")
            gate(name + "fall of nodes not full, %", run->second.at("not_full_fall_percent"), true,
                 std::string(share.algorithm) == "fast" ? 85 : 91);
    }
    for (const auto* algorithm : {"fast", "best"}) {
        double memory = 0;
        for (const auto& [key, columns] : means)
            if (key.second == algorithm) memory = std::max(memory, columns.at("peak_mib"));
        if (memory > 0) gate(std::string(algorithm) + ": peak memory, MiB", memory, false, 1024);
    }
    std::printf("%d gates missed; %d of %zu rows of gates had no runs\n", missed, left_out,
                std::size(shares));
    return missed;
}

}  // namespace gpusched::bench
