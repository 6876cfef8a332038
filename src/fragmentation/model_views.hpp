// SPDX-License-Identifier: Apache-2.0
// ModelViews: the shapes of a workload that each GPU model can run; equal models share a view.
#pragma once

#include <gpusched/fragmentation/workload.hpp>
#include <gpusched/model/gpu_names.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::fragmentation::detail {

/// Groups GPU models. Models that are accepted by the same shapes share a view.
struct ModelViews {
    std::vector<std::uint32_t> view_of_model;  ///< by GpuModelId; the last entry is for nodes without a model
    std::vector<std::vector<bool>> accepted;   ///< [view][shape]

    /// @param shapes the relevant shapes; no model accepts a nullptr
    /// @throws InvalidInput for a short name that several models of nodes have in common
    ModelViews(std::span<const WorkloadShape* const> shapes, const Inventory& inventory) {
        std::vector<std::vector<std::string>> names;
        for (const auto* shape : shapes)
            names.push_back(shape == nullptr ? std::vector<std::string>{} : full_names(*shape, inventory));
        std::map<std::vector<bool>, std::uint32_t> known;
        for (std::size_t model = 0; model <= inventory.gpu_models.size(); ++model) {
            std::vector<bool> here;
            for (std::size_t s = 0; s < shapes.size(); ++s)
                here.push_back(shapes[s] != nullptr &&
                               (names[s].empty() ||
                                (model < inventory.gpu_models.size() &&
                                 std::find(names[s].begin(), names[s].end(), inventory.gpu_models[model]) !=
                                     names[s].end())));
            const auto [at, added] = known.try_emplace(here, static_cast<std::uint32_t>(accepted.size()));
            view_of_model.push_back(at->second);
            if (added) accepted.push_back(std::move(here));
        }
    }

  private:
    /// The models of a shape by their names in the cluster.
    static std::vector<std::string> full_names(const WorkloadShape& shape, const Inventory& inventory) {
        auto names = shape.gpu_models;
        for (auto& name : names) {
            if (inventory.gpu_models.find(name)) continue;
            auto found = matching_gpu_models(name, gpu_models_of_nodes(inventory));
            if (found.size() > 1)
                throw InvalidInput(
                    gpusched::detail::ambiguous_gpu_model("gpu_models", name, found, "workload"));
            if (!found.empty()) name = std::move(found.front());
        }
        return names;
    }
};

}  // namespace gpusched::fragmentation::detail
