// SPDX-License-Identifier: Apache-2.0
// Names as Kubernetes accepts them.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

namespace gpusched::io::detail {

/// A pod's namespace and name: views of the task's name and the default namespace.
struct PodName {
    std::string_view space, name;
};

/// Splits "namespace/pod".
inline PodName pod_name(std::string_view task, std::string_view default_namespace) {
    const auto slash = task.find('/');
    if (slash == task.npos) return {default_namespace, task};
    return {task.substr(0, slash), task.substr(slash + 1)};
}

/// Whether it is an RFC 1123 label: lower-case letters, digits and inner hyphens.
inline bool is_kubernetes_label(std::string_view name) {
    const auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    return !name.empty() && name.size() <= 63 && alphanumeric(name.front()) && alphanumeric(name.back()) &&
           std::all_of(name.begin(), name.end(), [&](char c) { return alphanumeric(c) || c == '-'; });
}

/// Whether it is an RFC 1123 subdomain: labels joined by dots, at most 253 characters.
inline bool is_kubernetes_name(std::string_view name) {
    if (name.size() > 253) return false;
    for (;;) {
        const auto dot = name.find('.');
        if (!is_kubernetes_label(name.substr(0, dot))) return false;
        if (dot == name.npos) return true;
        name.remove_prefix(dot + 1);
    }
}

/// Reports every name of the plan that Kubernetes would not accept, once.
/// @throws InvalidInput with all of them
inline void require_kubernetes_names(const PlanSpec& plan, std::string_view default_namespace) {
    Problems problems;
    std::set<std::string_view> seen_tasks, seen_nodes;
    const auto task = [&](std::string_view name) {
        if (!seen_tasks.insert(name).second) return;
        const auto pod = pod_name(name, default_namespace);
        if (!is_kubernetes_label(pod.space) || !is_kubernetes_name(pod.name))
            problems.add("task " + gpusched::quoted(printable(name)) +
                         ": expected a Kubernetes pod name, with or without \"namespace/\" before it");
    };
    const auto node = [&](std::string_view name) {
        if (seen_nodes.insert(name).second && !is_kubernetes_name(name))
            problems.add("node " + gpusched::quoted(printable(name)) + ": expected a Kubernetes node name");
    };
    if (!is_kubernetes_label(default_namespace))
        problems.add(bad_value("default_namespace", gpusched::quoted(printable(default_namespace)),
                               "a Kubernetes namespace"));
    for (const auto& name : plan.evictions) task(name);
    for (const auto& move : plan.moves) {
        task(move.task);
        node(move.from);
        node(move.to);
    }
    for (const auto& placement : plan.placements) {
        task(placement.task);
        node(placement.node);
    }
    for (const auto& name : plan.vacated_nodes) node(name);
    problems.throw_if_any();
}

}  // namespace gpusched::io::detail
