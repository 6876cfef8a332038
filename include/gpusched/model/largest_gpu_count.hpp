// SPDX-License-Identifier: Apache-2.0
// largest_gpu_count: how many GPUs the largest node has, for tables by number of GPUs.
#pragma once

#include <gpusched/model/inventory.hpp>

#include <algorithm>

namespace gpusched {

/// The most GPUs that any node has; 0 without nodes. O(nodes).
[[nodiscard]] inline int largest_gpu_count(const Inventory& inventory) noexcept {
    const auto& counts = inventory.nodes.gpu_count;
    return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

}  // namespace gpusched
