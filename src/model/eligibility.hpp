// SPDX-License-Identifier: Apache-2.0
// What a task asks of a node besides resources, one condition at a time.
#pragma once

#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <vector>

namespace gpusched::detail {

inline bool accepts_model(const Requirement& requirement, const NodeClass& node_class) {
    const auto& models = requirement.gpu_models;
    return models.empty() || std::binary_search(models.begin(), models.end(), node_class.gpu_model);
}

inline bool finds_labels(const Requirement& requirement, const NodeClass& node_class) {
    return std::all_of(requirement.node_selector.begin(), requirement.node_selector.end(),
                       [&](const auto& label) {
                           const auto found = node_class.labels.find(label.first);
                           return found != node_class.labels.end() && found->second == label.second;
                       });
}

inline bool tolerates_taints(const Requirement& requirement, const NodeClass& node_class) {
    return std::all_of(node_class.taints.begin(), node_class.taints.end(), [&](const Taint& taint) {
        return Inventory::tolerates(requirement.tolerations, taint);
    });
}

}  // namespace gpusched::detail
