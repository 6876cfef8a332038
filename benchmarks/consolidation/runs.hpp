// SPDX-License-Identifier: Apache-2.0
// Runs of consolidation over scenarios and seeds.
#pragma once

#include "../support/command_line.hpp"
#include "scenarios.hpp"

#include <gpusched/consolidation/options.hpp>
#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpusched::bench {

struct Runs {
    std::int64_t nodes = 37'707;
    std::vector<std::uint64_t> seeds{};
    std::vector<std::string> wanted = scenario_names(false);
    std::size_t threads = 2;

    void options(CommandLine& line) {
        line.option("--nodes", nodes, "nodes of each cluster");
        line.option("--seeds", seeds, "seeds of the clusters");
        line.option("--scenarios", wanted, "kinds of clusters")->check(CLI::IsMember(scenario_names(true)));
        line.option("--threads", threads, "threads of the searches");
    }
    /// Calls `work(scenario, seed, spec, cluster)` for all of them.
    template <class Work>
    void each(Work&& work) const {
        for (const auto& scenario : scenarios) {
            if (std::find(wanted.begin(), wanted.end(), scenario.name) == wanted.end()) continue;
            for (const auto seed : seeds) {
                const auto spec = scenario.generate(nodes, seed);
                work(scenario, seed, spec, Cluster::build(spec));
            }
        }
    }
};

/// A part in per cent of the whole; 100 where there is nothing.
inline double percent(std::int64_t part, std::int64_t whole) {
    return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 100.0;
}

}  // namespace gpusched::bench
