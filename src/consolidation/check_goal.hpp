// SPDX-License-Identifier: Apache-2.0
// What a goal names must be in the cluster.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::consolidation::detail {

/// The GPU models that nodes have, sorted. The inventory also knows models that only tasks accept.
[[nodiscard]] inline std::vector<std::string_view> models_of_nodes(const Cluster& cluster) {
    const auto& inv = cluster.inventory();
    std::set<std::string_view> models;
    for (const auto node : cluster.nodes())
        if (const auto model = inv.nodes.gpu_model[index(node)];
            model != none<GpuModelId> && cluster.gpu_count(node) > 0)
            models.insert(inv.gpu_models[index(model)]);
    return {models.begin(), models.end()};
}

inline void check_goal_names(Problems& problems, const Goal& goal, const Cluster& cluster) {
    const auto& inv = cluster.inventory();
    const auto models = goal.gpu_model.empty() ? std::vector<std::string_view>() : models_of_nodes(cluster);
    if (!goal.gpu_model.empty() && !std::binary_search(models.begin(), models.end(), goal.gpu_model)) {
        constexpr std::size_t most_shown = 12;
        std::string known;
        for (const auto model : models)
            if (models.size() <= most_shown) known += (known.empty() ? ": " : ", ") + gpusched::quoted(model);
        problems.add(bad_value("gpu_model", gpusched::quoted(goal.gpu_model),
                               "a GPU model of the cluster" + known, "goal") +
                     (known.empty() ? did_you_mean(goal.gpu_model, models) : ""));
    }
    if (!goal.usable_by.empty() && !inv.tasks.names.find(goal.usable_by))
        problems.add(
            bad_value("usable_by", gpusched::quoted(goal.usable_by), "a task of the cluster", "goal") +
            did_you_mean(goal.usable_by, inv.tasks.names));
}

}  // namespace gpusched::consolidation::detail
