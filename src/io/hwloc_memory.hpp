// SPDX-License-Identifier: Apache-2.0
// NUMA nodes of hwloc where CPUs have several kinds of memory.
#pragma once

#include "io/hardware_parts.hpp"

#include <gpusched/core/errors.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::io::detail {

/// A NUMA node as hwloc writes it.
struct HwlocNuma {
    int id = 0;
    CpuRanges cpus{};
    std::string kind{};  ///< of its memory, as HBM or NVM; empty where there is one kind
    [[nodiscard]] bool ordinary() const { return kind.empty() || kind == "DRAM"; }
};

/// Reports more of them than Linux knows.
inline void check_count(const std::vector<HwlocNuma>& nodes, const std::string& source, Problems& problems) {
    constexpr std::size_t most = 1024;
    if (nodes.size() > most)
        problems.add(source + ": " + std::to_string(nodes.size()) + " NUMA nodes; expected at most " +
                     std::to_string(most));
}

[[nodiscard]] inline CpuRanges union_of(CpuRanges all, const std::vector<CpuRanges>& more) {
    std::vector<std::pair<int, int>> ranges;
    for (const auto& set : more) ranges.insert(ranges.end(), set.ranges.begin(), set.ranges.end());
    all.add(ranges);
    return all;
}

/// Which NUMA nodes are further memory of CPUs that have another one: each kind of memory is a NUMA node to hwloc. An
/// ordinary one stands for all, else the first. O(square of the nodes).
[[nodiscard]] inline std::vector<bool> further_memory(const std::vector<HwlocNuma>& nodes) {
    std::map<std::vector<std::pair<int, int>>, const HwlocNuma*> stands;
    for (const bool ordinary : {true, false})
        for (const auto& numa : nodes)
            if (numa.ordinary() == ordinary) stands.emplace(numa.cpus.ranges, &numa);
    std::vector<bool> further;
    for (const auto& numa : nodes) {
        const auto* first = stands.at(numa.cpus.ranges);
        const auto shares = [&](const HwlocNuma& other) {
            return other.ordinary() && other.cpus.meets(numa.cpus);
        };
        // The same id twice is a mistake, not memory.
        further.push_back(first != &numa
                              ? first->id != numa.id
                              : !numa.ordinary() && std::any_of(nodes.begin(), nodes.end(), shares));
    }
    return further;
}

}  // namespace gpusched::io::detail
