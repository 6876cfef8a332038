// SPDX-License-Identifier: Apache-2.0
// The library's victim policies, for tests that must hold of every one.
#pragma once

#include "support/catch.hpp"

#include <gpusched/preemption/victim_policy.hpp>

namespace testing_support {

inline std::vector<gpusched::preemption::Policy> all_policies() {
    std::vector<gpusched::preemption::Policy> found;
    for (const auto& row : gpusched::enumerators<gpusched::preemption::Policy>()) found.push_back(row.value);
    return found;
}

}  // namespace testing_support
