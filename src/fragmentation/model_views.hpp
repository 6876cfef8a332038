// SPDX-License-Identifier: Apache-2.0
// ModelViews: the shapes of a workload that each GPU model can run; equal models share a view.
#pragma once

#include <gpusched/fragmentation/workload.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace gpusched::fragmentation::detail {

/// Groups GPU models. Models that are accepted by the same shapes share a view.
struct ModelViews {
    std::vector<std::uint32_t> view_of_model;  ///< by GpuModelId; the last entry is for nodes without a model
    std::vector<std::vector<bool>> accepted;   ///< [view][shape]

    /// @param shapes the relevant shapes; no model accepts a nullptr
    ModelViews(std::span<const WorkloadShape* const> shapes, const Inventory& inventory) {
        std::map<std::vector<bool>, std::uint32_t> known;
        for (std::size_t model = 0; model <= inventory.gpu_models.size(); ++model) {
            std::vector<bool> here;
            for (const auto* shape : shapes)
                here.push_back(shape != nullptr &&
                               (shape->gpu_models.empty() ||
                                (model < inventory.gpu_models.size() &&
                                 std::find(shape->gpu_models.begin(), shape->gpu_models.end(),
                                           inventory.gpu_models[model]) != shape->gpu_models.end())));
            const auto [at, added] = known.try_emplace(here, static_cast<std::uint32_t>(accepted.size()));
            view_of_model.push_back(at->second);
            if (added) accepted.push_back(std::move(here));
        }
    }
};

}  // namespace gpusched::fragmentation::detail
