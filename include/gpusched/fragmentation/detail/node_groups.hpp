// SPDX-License-Identifier: Apache-2.0
// Helpers of metrics: the nodes that count, and their groups.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/inventory.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gpusched::fragmentation::detail {

/// Returns true for nodes with GPUs, at most `max_gpus_per_node` of them, that are not cordoned or
/// `include_cordoned` is set.
inline bool counts(const NodeTable& nodes, NodeId node, bool include_cordoned,
                   std::optional<int> max_gpus_per_node = std::nullopt) noexcept {
    const auto i = index(node);
    return nodes.gpu_count[i] > 0 && (include_cordoned || !nodes.is_cordoned(node)) &&
           (!max_gpus_per_node || nodes.gpu_count[i] <= *max_gpus_per_node);
}

/// Returns the index of the node's model, or one past the last index if the node names none.
inline std::size_t model_index(const Inventory& inventory, NodeId node) noexcept {
    const auto model = inventory.nodes.gpu_model[index(node)];
    return model == none<GpuModelId> ? inventory.gpu_models.size() : index(model);
}

/// Returns the name of a model index; empty for nodes without a model name.
inline std::string model_name(const Inventory& inventory, std::size_t model) {
    return model < inventory.gpu_models.size() ? inventory.gpu_models[model] : std::string();
}

/// Returns the top network level. Without a network it is the node level: every node is its own domain.
inline Level top_level(const Inventory& inventory) noexcept {
    return inventory.network_levels() > 0 ? 0 : node_level;
}

/// Returns the requested level, or the deepest known level.
/// @throws InvalidInput if the level is out of range
inline Level checked_level(const Inventory& inventory, std::optional<Level> level) {
    if (!level) return inventory.deepest_level();
    if (*level < node_level || *level > inventory.deepest_level())
        throw InvalidInput(bad_value("level", std::to_string(*level),
                                     "-1 (node) to " + std::to_string(inventory.deepest_level())));
    return *level;
}

}  // namespace gpusched::fragmentation::detail
