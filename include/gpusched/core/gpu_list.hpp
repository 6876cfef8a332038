// SPDX-License-Identifier: Apache-2.0
// Sets of GPUs as lists of indices, the form that files and callers use.
#pragma once

#include <gpusched/core/gpu_mask.hpp>

#include <span>
#include <vector>

namespace gpusched {

/// The GPUs of the mask, ascending.
[[nodiscard]] inline std::vector<int> gpu_list(GpuMask mask) {
    std::vector<int> list;
    for_each_gpu(mask, [&](int gpu) { list.push_back(gpu); });
    return list;
}

/// The mask of the listed GPUs of a node that has `count` of them. What does not belong there is left out and told:
/// `lacking(gpu)` for indices outside 0 .. count - 1, `repeated(gpu)` for those that were listed before.
template <class Lacking, class Repeated>
[[nodiscard]] GpuMask gpu_mask(std::span<const int> list, int count, Lacking&& lacking, Repeated&& repeated) {
    GpuMask mask = 0;
    for (const int gpu : list) {
        if (gpu < 0 || gpu >= count)
            lacking(gpu);
        else if ((mask & gpu_bit(gpu)) != 0)
            repeated(gpu);
        else
            mask = static_cast<GpuMask>(mask | gpu_bit(gpu));
    }
    return mask;
}

}  // namespace gpusched
