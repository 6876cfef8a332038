// SPDX-License-Identifier: Apache-2.0
#include "consolidation/check_goal.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/goal_nodes.hpp>

#include <algorithm>
#include <map>
#include <vector>

namespace gpusched::consolidation {

GPUSCHED_EXPORT std::vector<NodeId> goal_nodes(const Cluster& cluster, const Goal& goal) {
    Problems problems;
    detail::check_goal_names(problems, goal, cluster);
    problems.throw_if_any();
    const auto& inv = cluster.inventory();
    const auto taints = [&](NodeId node) -> const std::vector<Taint>& {
        return inv.node_classes[inv.nodes.node_class[index(node)]].taints;
    };
    const auto has = [](const std::vector<Taint>& list, const Taint& taint) {
        return std::find(list.begin(), list.end(), taint) != list.end();
    };
    bool any_gpus = false;
    std::map<GpuModelId, std::vector<Taint>> common;
    for (const auto node : cluster.nodes()) {
        if (inv.nodes.is_cordoned(node)) continue;
        any_gpus = any_gpus || cluster.gpu_count(node) > 0;
        const auto [of_model, first] = common.try_emplace(inv.nodes.gpu_model[index(node)], taints(node));
        if (!first)
            std::erase_if(of_model->second, [&](const Taint& taint) { return !has(taints(node), taint); });
    }
    const auto model = goal.gpu_model.empty()
                           ? none<GpuModelId>
                           : make_id<GpuModelId>(inv.gpu_models.find(goal.gpu_model).value());
    const auto user = goal.usable_by.empty() ? none<TaskId> : cluster.find_task(goal.usable_by);
    const auto counts = [&](NodeId node) {
        const auto of_node = inv.nodes.gpu_model[index(node)];
        if (inv.nodes.is_cordoned(node) || (model != none<GpuModelId> && of_node != model)) return false;
        if (goal.empty_nodes && any_gpus && gpu_count(cluster.healthy_gpus(node)) == 0) return false;
        if (user != none<TaskId>) return inv.eligible(user, node);
        return std::all_of(taints(node).begin(), taints(node).end(),
                           [&](const Taint& taint) { return has(common[of_node], taint); });
    };
    std::vector<NodeId> out;
    for (const auto node : cluster.nodes())
        if (counts(node)) out.push_back(node);
    return out;
}

}  // namespace gpusched::consolidation
