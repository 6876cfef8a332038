// SPDX-License-Identifier: Apache-2.0
// Which nodes a metric counts, and how it groups them.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/inventory.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gpusched::fragmentation::detail {

/// True for nodes with GPUs, but not too many of them, that are not cordoned (unless those count too).
inline bool counts(const NodeTable& nodes, NodeId node, bool include_cordoned,
                   std::optional<int> max_gpus_per_node = std::nullopt) noexcept {
    const auto i = index(node);
    return nodes.gpu_count[i] > 0 && (include_cordoned || !nodes.is_cordoned(node)) &&
           (!max_gpus_per_node || nodes.gpu_count[i] <= *max_gpus_per_node);
}

/// The model's index, or one past the last for a node that names none.
inline std::size_t model_index(const Inventory& inventory, NodeId node) noexcept {
    const auto model = inventory.nodes.gpu_model[index(node)];
    return model == none<GpuModelId> ? inventory.gpu_models.size() : index(model);
}

/// Its name; empty for nodes that name none.
inline std::string model_name(const Inventory& inventory, std::size_t model) {
    return model < inventory.gpu_models.size() ? inventory.gpu_models[model] : std::string();
}

/// The top network level; without a network every node stands for itself.
inline Level top_level(const Inventory& inventory) noexcept {
    return inventory.network_levels() > 0 ? 0 : node_level;
}

/// The level asked for, or the deepest that is known.
inline Level checked_level(const Inventory& inventory, std::optional<Level> level) {
    if (!level) return inventory.deepest_level();
    if (*level < node_level || *level > inventory.deepest_level())
        throw InvalidInput(bad_value("level", std::to_string(*level),
                                     "-1 (node) to " + std::to_string(inventory.deepest_level())));
    return *level;
}

}  // namespace gpusched::fragmentation::detail
