// SPDX-License-Identifier: Apache-2.0
// The generated clusters that consolidation is measured on.
#pragma once

#include <gpusched/sim/generator.hpp>

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

/// Their names, those with every kind of constraint only with `all`.
inline std::vector<std::string> scenario_names(bool all) {
    std::vector<std::string> names;
    for (const auto& scenario : scenarios)
        if (all || !scenario.constrained()) names.emplace_back(scenario.name);
    return names;
}

}  // namespace gpusched::bench
