// SPDX-License-Identifier: Apache-2.0
// The library's victim policies, for tests that must hold of every one, and names of victims.
#pragma once

#include "support/catch.hpp"

#include <gpusched/preemption/victim_policy.hpp>

namespace testing_support {

inline std::vector<gpusched::preemption::Policy> all_policies() {
    std::vector<gpusched::preemption::Policy> found;
    for (const auto& row : gpusched::enumerators<gpusched::preemption::Policy>()) found.push_back(row.value);
    return found;
}

/// A user-defined order, independent of the obstacles.
struct Scattered {
    std::int64_t operator()(const gpusched::Cluster&, gpusched::TaskId victim, std::int64_t) const {
        return static_cast<std::int64_t>(gpusched::index(victim)) * 7 % 5;
    }
};

inline std::vector<std::string> names(const gpusched::Cluster& cluster,
                                      const std::vector<gpusched::TaskId>& tasks) {
    std::vector<std::string> out;
    for (const auto task : tasks) out.push_back(cluster.name(task));
    std::sort(out.begin(), out.end());
    return out;
}

}  // namespace testing_support
