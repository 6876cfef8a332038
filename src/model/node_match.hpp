// SPDX-License-Identifier: Apache-2.0
// Whether a node satisfies the selector, affinity and tolerations of a task, as kube-scheduler evaluates
// them.
#pragma once

#include <gpusched/core/text.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/inventory.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::detail {

/// The taint of a cordoned node, with effect NoSchedule. Tasks that tolerate it can still be placed there.
inline constexpr std::string_view cordon_taint = "node.kubernetes.io/unschedulable";

/// True for the taints of Kubernetes that tell the state of a node.
inline bool is_state(const Taint& taint) { return taint.key.starts_with("node.kubernetes.io/"); }

/// The taint of a node that is not ready.
inline constexpr std::string_view not_ready_taint = "node.kubernetes.io/not-ready";

/// True if a taint says that the node is not ready.
inline bool is_not_ready(const std::vector<Taint>& taints) {
    return std::any_of(taints.begin(), taints.end(), [](const Taint& taint) {
        return taint.key == not_ready_taint || taint.key == "node.kubernetes.io/unreachable";
    });
}

/// The kind of owner of Slurm's tasks.
inline constexpr const char* slurm_job = "Slurm job";

/// The group of all tasks, which exclusive jobs of Slurm avoid.
inline constexpr const char* slurm_all = "slurm/all";

/// Whether a named resource stands for volumes that some nodes reach.
inline bool is_volume(std::string_view resource) { return resource.starts_with("volumes like "); }

/// The label with the reason that Slurm gives for the state of a node.
inline constexpr const char* slurm_reason = "slurm/reason";

/// Whether the cluster is of Slurm: a task says so, or a label that its reader gives to nodes.
[[nodiscard]] bool is_slurm(const Inventory& inventory);

/// The first obstacle that never changes for the task: GPU model, selector, affinity, taint or volume.
[[nodiscard]] Obstacle find_permanent_obstacle(const Cluster& cluster, TaskId task, NodeId node);

/// An obstacle in the words of the cluster.
[[nodiscard]] std::string_view obstacle_text(const Inventory& inventory, Obstacle obstacle);

/// Whether the nodes are of Kubernetes: its agent gives each of them this label.
inline bool is_kubernetes(const Inventory& inventory) {
    return std::any_of(
        inventory.node_attributes.begin(), inventory.node_attributes.end(),
        [](const auto& attributes) { return attributes.labels.contains("kubernetes.io/hostname"); });
}

/// Reads an integer as Kubernetes does: with an optional sign, without white space.
inline std::optional<std::int64_t> label_integer(std::string_view text) {
    if (text.starts_with('+')) text = text.starts_with("+-") ? std::string_view{} : text.substr(1);
    std::int64_t value = 0;
    if (!read_number(text, value)) return std::nullopt;
    return value;
}

/// @param has the label's value; nullptr = the node has no such label
inline bool holds(const NodeMatch& match, const std::string* has) {
    const auto listed = [&] {
        return has != nullptr &&
               std::find(match.values.begin(), match.values.end(), *has) != match.values.end();
    };
    switch (match.op) {
    case MatchOperator::in:
        return listed();
    case MatchOperator::not_in:
        return !listed();
    case MatchOperator::exists:
        return has != nullptr;
    case MatchOperator::does_not_exist:
        return has == nullptr;
    case MatchOperator::gt:
    case MatchOperator::lt:
        break;
    }
    if (has == nullptr || match.values.size() != 1) return false;
    const auto node = label_integer(*has), bound = label_integer(match.values.front());
    if (!node || !bound) return false;
    return match.op == MatchOperator::gt ? *node > *bound : *node < *bound;
}

inline bool holds(const NodeMatch& match, const Labels& labels) {
    const auto found = labels.find(match.key);
    return holds(match, found == labels.end() ? nullptr : &found->second);
}

inline bool holds(const NodeTerm& term, const Labels& labels, const std::string& name) {
    if (term.match_expressions.empty() && term.match_fields.empty()) return false;
    return std::all_of(term.match_expressions.begin(), term.match_expressions.end(),
                       [&](const NodeMatch& match) { return holds(match, labels); }) &&
           std::all_of(term.match_fields.begin(), term.match_fields.end(),
                       [&](const NodeMatch& match) { return holds(match, &name); });
}

inline bool holds(const std::vector<NodeTerm>& affinity, const Labels& labels, const std::string& name) {
    return affinity.empty() || std::any_of(affinity.begin(), affinity.end(),
                                           [&](const NodeTerm& term) { return holds(term, labels, name); });
}

inline bool holds(const Labels& selector, const Labels& labels) {
    return std::all_of(selector.begin(), selector.end(), [&](const auto& label) {
        const auto found = labels.find(label.first);
        return found != labels.end() && found->second == label.second;
    });
}

inline bool accepts_model(const Requirement& requirement, const NodeClass& node_class) {
    const auto& models = requirement.gpu_models;
    return models.empty() || std::binary_search(models.begin(), models.end(), node_class.gpu_model);
}

inline bool tolerates_taints(const Requirement& requirement, const NodeClass& node_class) {
    return std::all_of(node_class.taints.begin(), node_class.taints.end(), [&](const Taint& taint) {
        return Inventory::tolerates(requirement.tolerations, taint);
    });
}

/// Says that no task runs that this one must be near, and names a pending one; empty if one runs.
/// @param running a pending one is no help yet; otherwise it counts like one that runs
[[nodiscard]] std::string missing_neighbours(const Cluster& cluster, TaskId task, bool running = true);
/// The same; if one runs, that no node has room next to it.
[[nodiscard]] std::string describe_lonely(const Cluster& cluster, TaskId task, bool running = true);

}  // namespace gpusched::detail
