// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/preemption/named.hpp>

namespace gpusched::preemption {

GPUSCHED_EXPORT const Registry<VictimPolicy>& victim_policies() {
    static const auto all = [] {
        Registry<VictimPolicy> r("policy");
        for (const auto& row : enum_names(Policy{})) r.add(row.name, [policy = row.value] { return policy; });
        return r;
    }();
    return all;
}

}  // namespace gpusched::preemption
