// What a goal names must be in the cluster.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/nearest_names.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/goal.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation::detail {

/// The GPU models of nodes, for a message: all where they are few, else nothing.
[[nodiscard]] inline std::string model_names(const Cluster& cluster) {
    constexpr std::size_t most_shown = 12;
    std::vector<std::string> names;
    const auto& inv = cluster.inventory();
    for (const auto node : cluster.nodes()) {
        if (cluster.gpu_count(node) == 0) continue;
        const auto model = inv.nodes.gpu_model[index(node)];
        auto name = model == none<GpuModelId> ? std::string() : std::string(inv.gpu_models[index(model)]);
        if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
            names.push_back(std::move(name));
    }
    if (names.size() > most_shown) return {};
    std::sort(names.begin(), names.end());
    std::string out;
    for (const auto& name : names) out += (out.empty() ? ": " : ", ") + gpusched::quoted(name);
    return out;
}

inline void check_goal_names(Problems& problems, const Goal& goal, const Cluster& cluster) {
    const auto& inv = cluster.inventory();
    if (!goal.gpu_model.empty() && !inv.gpu_models.find(goal.gpu_model)) {
        const auto known = model_names(cluster);
        problems.add(bad_value("gpu_model", gpusched::quoted(goal.gpu_model),
                               "a GPU model of the cluster" + known, "goal") +
                     (known.empty() ? did_you_mean(goal.gpu_model, inv.gpu_models) : ""));
    }
    if (!goal.usable_by.empty() && !inv.tasks.names.find(goal.usable_by))
        problems.add(
            bad_value("usable_by", gpusched::quoted(goal.usable_by), "a task of the cluster", "goal") +
            did_you_mean(goal.usable_by, inv.tasks.names));
}

}  // namespace GPUSCHED_NAMESPACE::consolidation::detail
