#pragma once

#include <gpusched/config.hpp>
#include <gpusched/control/memory.hpp>

#include <algorithm>
#include <cmath>

namespace gpusched::control {

GPUSCHED_INLINE TenantMemory aged(TenantMemory memory, double seconds, double window_s) {
    const auto windows = static_cast<std::int64_t>(std::min(std::floor(seconds / window_s), 1e12));
    for (auto* since : {&memory.structural_windows, &memory.guard_windows})
        if (*since >= 0) *since += windows;
    memory.cooldown_windows = std::max<std::int64_t>(0, memory.cooldown_windows - windows);
    for (auto& past : memory.structural) past.ago_s += seconds;
    for (auto& change : memory.blocked) change.windows -= windows;
    std::erase_if(memory.blocked, [](const BlockedChange& change) { return change.windows <= 0; });
    return memory;
}

}  // namespace gpusched::control
