// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/control/carryover.hpp>

#include <algorithm>
#include <cmath>

namespace gpusched::control {

GPUSCHED_EXPORT ControllerCarryover by_tenant(const std::vector<NamedCarryover>& named, const Host& host) {
    ControllerCarryover out(host.tenants.size());
    for (const auto& [name, carryover] : named)
        for (std::size_t i = 0; i < out.size(); ++i)
            if (host.tenants[i].is_protected && host.tenants[i].name == name) out[i] = carryover;
    return out;
}

GPUSCHED_EXPORT TenantCarryover aged(TenantCarryover carryover, double seconds, double window_s) {
    const auto windows = static_cast<std::int64_t>(std::min(std::floor(seconds / window_s), 1e12));
    for (auto* since : {&carryover.structural_windows, &carryover.guard_windows})
        if (*since >= 0) *since += windows;
    carryover.cooldown_windows = std::max<std::int64_t>(0, carryover.cooldown_windows - windows);
    for (auto& past : carryover.structural) past.ago_s += seconds;
    for (auto& change : carryover.blocked) change.windows -= windows;
    std::erase_if(carryover.blocked, [](const BlockedChange& change) { return change.windows <= 0; });
    return carryover;
}

}  // namespace gpusched::control
