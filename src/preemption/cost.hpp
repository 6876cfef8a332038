// SPDX-License-Identifier: Apache-2.0
// What an eviction costs, by the caller's function or the default.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/preemption/options.hpp>

#include <cstdint>
#include <string>

namespace gpusched::preemption::detail {

/// @throws InvalidInput when the caller's function answers less than 0 or more than `largest_cost`
inline std::int64_t cost_of(const Cluster& cluster, TaskId task, std::int64_t now, const CostFunction& cost) {
    if (!cost) return lost_work(cluster, task, now);
    const auto found = cost(cluster, task, now);
    if (found < 0 || found > largest_cost)
        throw InvalidInput(bad_value("cost", std::to_string(found), "0 to " + std::to_string(largest_cost),
                                     "task " + gpusched::quoted(cluster.name(task))));
    return found;
}

}  // namespace gpusched::preemption::detail
