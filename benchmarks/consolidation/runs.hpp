// SPDX-License-Identifier: Apache-2.0
// The generated clusters of the consolidation benchmarks, by scenario and seed.
#pragma once

#include "../support/command_line.hpp"

#include <gpusched/model/cluster.hpp>
#include <gpusched/sim/generator.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::bench {

struct Scenario {
    const char* name;
    sim::Layout layout;
    double load;
    bool cpu_tight;
    const char* preset = "asi";

    [[nodiscard]] bool constrained() const { return std::string_view(preset) == "constrained"; }

    [[nodiscard]] ClusterSpec generate(std::int64_t nodes, std::uint64_t seed) const {
        return sim::generate_cluster({.preset = preset,
                                      .nodes = nodes,
                                      .seed = seed,
                                      .layout = layout,
                                      .load = load,
                                      .cpu_tight = cpu_tight});
    }
};
inline constexpr Scenario scenarios[] = {{"random.80", sim::Layout::random, 1.0, false},
                                         {"spread.80", sim::Layout::spread, 1.0, false},
                                         {"spread.68", sim::Layout::spread, 0.85, false},
                                         {"packed.80", sim::Layout::packed, 1.0, false},
                                         {"random.90", sim::Layout::random, 1.15, false},
                                         {"cpu-tight", sim::Layout::random, 0.95, true},
                                         {"constrained.80", sim::Layout::random, 1.0, false, "constrained"}};

/// The names of the scenarios. The one with every kind of constraint is included only with `all`.
inline std::vector<std::string> scenario_names(bool all) {
    std::vector<std::string> names;
    for (const auto& scenario : scenarios)
        if (all || !scenario.constrained()) names.emplace_back(scenario.name);
    return names;
}

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
    /// Calls `work(scenario, seed, spec, cluster)` for every cluster.
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

/// The part in percent of the whole; 100 if the whole is 0.
inline double percent(std::int64_t part, std::int64_t whole) {
    return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 100.0;
}

}  // namespace gpusched::bench
