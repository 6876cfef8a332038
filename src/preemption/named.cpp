#pragma once

#include <gpusched/preemption/named.hpp>

namespace GPUSCHED_NAMESPACE::preemption {

GPUSCHED_INLINE const Registry<VictimPolicy>& victim_policies() {
    static const auto all = [] {
        Registry<VictimPolicy> r("policy");
        for (const auto& row : enum_names(Policy{})) r.add(row.name, [policy = row.value] { return policy; });
        return r;
    }();
    return all;
}

}  // namespace GPUSCHED_NAMESPACE::preemption
