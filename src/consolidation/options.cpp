// SPDX-License-Identifier: Apache-2.0
// Validation of options, and the nodes that count for a goal.
#include "consolidation/checks.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/model/gpu_names.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace gpusched::consolidation {

namespace detail {

void check_nodes(Problems& problems, const char* field, const Cluster& cluster,
                 const std::vector<NodeId>& nodes, const std::vector<NodeId>& exempt) {
    auto excluded = exempt;
    std::sort(excluded.begin(), excluded.end());
    for (const auto node : nodes)
        if (!cluster.contains(node))
            problems.add(std::string(field) + ": there is no node " + std::to_string(index(node)) +
                         "; expected less than " + std::to_string(cluster.node_slots()));
        else if (std::binary_search(excluded.begin(), excluded.end(), node))
            problems.add(
                bad_value(field, gpusched::quoted(cluster.name(node)), "a node that is not in exempt"));
}

void require_node(const Cluster& cluster, NodeId node) {
    Problems problems;
    check_nodes(problems, "node", cluster, {node});
    problems.throw_if_any();
}

std::string full_gpu_model(Problems& problems, const Cluster& cluster, const std::string& name,
                           const std::string& owner) {
    if (name.empty()) return {};
    const auto models = gpu_models_of_nodes(cluster);
    const auto matching = matching_gpu_models(name, models);
    if (matching.size() == 1) return matching.front();
    problems.add(matching.empty()
                     ? gpusched::detail::unknown_gpu_model("gpu_model", name, models, owner)
                     : gpusched::detail::ambiguous_gpu_model("gpu_model", name, matching, owner));
    return {};
}

// Checks the names in a goal. Returns the name of its GPU model in the cluster.
static std::string check_goal_names(Problems& problems, const Goal& goal, const Cluster& cluster) {
    const auto& names = cluster.inventory().tasks.names;
    auto model = full_gpu_model(problems, cluster, goal.gpu_model, "goal");
    if (!goal.usable_by.empty() && !names.find(goal.usable_by))
        problems.add(
            bad_value("usable_by", gpusched::quoted(goal.usable_by), "a task of the cluster", "goal") +
            did_you_mean(goal.usable_by, names));
    return model;
}

// Checks the goal, and the options that cannot be combined with it.
static void check_goal(Problems& problems, const Options& options, const Cluster& cluster) {
    const auto& goal = *options.goal;
    check_fields(problems, goal, "goal");
    if (goal.empty_nodes.has_value() == goal.slots.has_value())
        problems.add(std::string("goal: ") +
                     (goal.slots ? "empty_nodes and slots" : "neither empty_nodes nor slots") +
                     "; expected one of the two");
    if (goal.empty_nodes && goal.count) problems.add("goal: count cannot be combined with empty_nodes");
    if (goal.slots) {
        check_fields(problems, *goal.slots, "goal: slots");
        if (*goal.slots == SlotShape{})
            problems.add(
                "goal: slots: all amounts are 0; expected gpu_count, cpu_milli or memory_mib above 0");
    }
    (void)check_goal_names(problems, goal, cluster);
    if (options.preset == Preset::ipc)
        problems.add("preset: ipc cannot be combined with goal; expected fast or best");
    if (options.objective != Objective{}) problems.add("objective cannot be combined with goal");
    if (options.search.polish_time) problems.add("polish_time cannot be combined with goal");
}

static void check_options(Problems& problems, const Options& options, const Cluster& cluster) {
    check_fields(problems, options);
    if (options.clear) check_nodes(problems, "clear", cluster, *options.clear, options.exempt);
    check_nodes(problems, "exempt", cluster, options.exempt);
    if (options.goal) check_goal(problems, options, cluster);
    if (!options.clear && options.open_price && *options.open_price >= 0 && *options.open_price < milli)
        problems.add(
            bad_value("open_price", std::to_string(*options.open_price), "at least 1000 without clear"));
}

GPUSCHED_EXPORT void validate_with_policies(const Options& options, const Cluster& cluster,
                                            bool takes_limits) {
    Problems problems;
    check_options(problems, options, cluster);
    const Options defaults;
    const auto unused = [&](const char* field, const std::string& value, const char* instead) {
        problems.add(
            bad_value(field, value, "the default with policies of your own: " + std::string(instead)));
    };
    if (options.preset != defaults.preset)
        unused("preset", enum_name(options.preset), "start from those of a preset instead");
    if (options.goal) problems.add("goal: it has no effect with policies of your own; expected none");
    if (options.objective != defaults.objective)
        unused("objective", enum_name(options.objective), "their node_weight replaces it");
    constexpr const char* no_limits = "their acceptance takes no limits, unlike PriceLimit";
    if (options.search.max_others && !takes_limits)
        unused("max_others", std::to_string(*options.search.max_others), no_limits);
    if (options.price != defaults.price && !takes_limits)
        unused("price", std::to_string(options.price), no_limits);
    problems.throw_if_any();
}

}  // namespace detail

GPUSCHED_EXPORT void validate(const Options& options, const Cluster& cluster) {
    Problems problems;
    detail::check_options(problems, options, cluster);
    problems.throw_if_any();
}

GPUSCHED_EXPORT Goal with_full_names(const Cluster& cluster, const Goal& given) {
    Problems problems;
    auto goal = given;
    goal.gpu_model = detail::check_goal_names(problems, given, cluster);
    problems.throw_if_any();
    return goal;
}

GPUSCHED_EXPORT std::vector<NodeId> goal_nodes(const Cluster& cluster, const Goal& given) {
    const auto goal = with_full_names(cluster, given);
    const auto& inv = cluster.inventory();
    const auto taints = [&](NodeId node) -> const std::vector<Taint>& {
        return inv.node_classes[inv.nodes.node_class[index(node)]].taints;
    };
    const auto has = [](const std::vector<Taint>& list, const Taint& taint) {
        return std::find(list.begin(), list.end(), taint) != list.end();
    };
    bool any_gpus = false;
    std::map<GpuModelId, std::vector<Taint>> common;  // taints of all schedulable nodes of a model
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
    auto emptied = cluster;
    if (user != none<TaskId>) {
        emptied.commit();
        for (const auto task : cluster.tasks())
            if (cluster.is_movable(task) || (task == user && cluster.is_placed(task))) emptied.remove(task);
    }
    const auto counts = [&](NodeId node) {
        const auto of_node = inv.nodes.gpu_model[index(node)];
        if (inv.nodes.is_cordoned(node) || (model != none<GpuModelId> && of_node != model)) return false;
        if (goal.empty_nodes && any_gpus && gpu_count(cluster.healthy_gpus(node)) == 0) return false;
        if (user != none<TaskId>)
            return inv.eligible(user, node) && find_resource_obstacle(emptied, user, node) == Obstacle::none;
        return std::all_of(taints(node).begin(), taints(node).end(),
                           [&](const Taint& taint) { return has(common[of_node], taint); });
    };
    std::vector<NodeId> out;
    for (const auto node : cluster.nodes())
        if (counts(node)) out.push_back(node);
    return out;
}

}  // namespace gpusched::consolidation
