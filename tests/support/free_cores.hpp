// SPDX-License-Identifier: Apache-2.0
// Cores next to GPUs, counted one by one.
#pragma once

#include "support/catch.hpp"

#include <gpusched/model/cluster.hpp>

namespace testing_support {

// Thousandths of the NUMA node's cores that are free for the task. The use and claims of others are put on single cores
// if they name them, else on any of the rest; a claim of Standby and a borrower share cores if possible.
inline std::int64_t free_cores(const gpusched::ClusterSpec& spec, const gpusched::Cluster& after,
                               const gpusched::TaskSpec& t, gpusched::NodeId node,
                               const gpusched::NumaNode& numa) {
    using namespace gpusched;
    const auto& hardware = *spec.nodes[index(node)].hardware;
    int first = 0;
    for (const auto* place = hardware.numa_nodes.data(); place != &numa; ++place) first += place->cores;
    struct Held {
        std::int64_t firm = 0, lent = 0, borrowed = 0;
    };
    std::map<int, Held> of_core;
    Held anywhere;
    for (const auto other : after.tasks_on(node)) {
        const auto& o = spec.tasks[index(other)];
        if (o.standby && t.priority_class == PriorityClass::lp) continue;
        const auto kind = o.standby                               ? &Held::lent
                          : o.priority_class == PriorityClass::lp ? &Held::borrowed
                                                                  : &Held::firm;
        if (o.cores) {
            for (const int core : *o.cores)
                if (core >= first && core < first + numa.cores) of_core[core].*kind += 1000;
            continue;
        }
        std::vector<const NumaNode*> own;
        for (const auto& place : hardware.numa_nodes)
            if (o.gpu_count == 0 || (place.gpus & after.gpus_of(other)) != 0) own.push_back(&place);
        for (std::size_t i = 0; i < own.size(); ++i) {
            const auto parts = static_cast<std::int64_t>(own.size());
            if (own[i] == &numa)
                anywhere.*kind += o.cpu_milli / parts + (static_cast<std::int64_t>(i) < o.cpu_milli % parts);
        }
    }
    // Each thousandth that is lent finds a borrowed one, and the other way round, unless both are bound to their cores.
    std::int64_t taken = anywhere.firm, lent_alone = 0, borrowed_alone = 0;
    for (const auto& [core, held] : of_core) {
        const auto both = std::min(held.lent, held.borrowed);
        taken += held.firm + both;
        lent_alone += held.lent - both;
        borrowed_alone += held.borrowed - both;
    }
    auto lent = anywhere.lent, borrowed = anywhere.borrowed;
    const auto meet = [&](std::int64_t& a, std::int64_t& b) {
        const auto both = std::min(a, b);
        a -= both;
        b -= both;
        taken += both;
    };
    meet(lent, borrowed_alone);
    meet(borrowed, lent_alone);
    meet(lent, borrowed);
    return numa.cores * std::int64_t{1000} - taken - lent - borrowed - lent_alone - borrowed_alone;
}

}  // namespace testing_support
