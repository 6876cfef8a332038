// SPDX-License-Identifier: Apache-2.0
// Objects of Kubernetes as text, and what a reading says of them.
#pragma once

#include "../reading_rows.hpp"

#include <gpusched/io/io.hpp>
#include <gpusched/model/feasibility.hpp>

namespace kubernetes_text {

using namespace gpusched;
using testing_support::row;
using testing_support::rows;

/// Members of an object, to be put among others: `, "a": 1` of `"a": 1`.
inline std::string more(const std::string& members) { return members.empty() ? "" : ", " + members; }

struct NodeText {
    std::string allocatable = R"("cpu": "8", "memory": "32Gi", "pods": "110")";
    std::string capacity{};  ///< empty = allocatable
    std::string labels{};
    std::string spec{};
    std::string metadata{};
};
inline std::string node(const std::string& name, const NodeText& text = {}) {
    return R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": ")" + name + R"(", "labels": {)" +
           text.labels + "}" + more(text.metadata) + R"(}, "spec": {)" + text.spec +
           R"(}, "status": {"allocatable": {)" + text.allocatable + R"(}, "capacity": {)" +
           (text.capacity.empty() ? text.allocatable : text.capacity) +
           R"(}, "conditions": [{"type": "Ready", "status": "True"}]}})";
}

struct PodText {
    std::string requests{};  ///< of its one container
    std::string on{};        ///< node
    std::string labels{};
    std::string spec{};
    std::string metadata{};
    std::string status{};
    std::string phase = "Running";
    std::string space = "default";
    std::string containers{};  ///< instead of one with `requests`
};
inline std::string pod(const std::string& name, const PodText& text = {}) {
    const auto containers = text.containers.empty()
                                ? R"({"name": "main", "resources": {"requests": {)" + text.requests + "}}}"
                                : text.containers;
    return R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ")" + name + R"(", "namespace": ")" +
           text.space + R"(", "labels": {)" + text.labels + "}" + more(text.metadata) +
           R"(}, "spec": {"containers": [)" + containers + "]" +
           more(text.on.empty() ? "" : R"("nodeName": ")" + text.on + "\"") + more(text.spec) +
           R"(}, "status": {"phase": ")" +
           (text.on.empty() && text.phase == "Running" ? "Pending" : text.phase) + "\"" + more(text.status) +
           "}}";
}
inline std::string owned_by(const std::string& kind, const std::string& name) {
    return R"("ownerReferences": [{"apiVersion": "x/v1", "kind": ")" + kind + R"(", "name": ")" + name +
           R"(", "controller": true}])";
}
inline std::string object(const std::string& version, const std::string& kind, const std::string& name,
                          const std::string& members = {}, const std::string& metadata = {}) {
    return R"({"apiVersion": ")" + version + R"(", "kind": ")" + kind + R"(", "metadata": {"name": ")" +
           name + R"(", "namespace": "default")" + more(metadata) + "}" + more(members) + "}";
}
inline std::string list(const std::vector<std::string>& items) {
    std::string out = R"({"apiVersion": "v1", "kind": "List", "items": [)";
    for (std::size_t i = 0; i < items.size(); ++i) out += (i == 0 ? "" : ", ") + items[i];
    return out + "]}";
}

/// Reads objects; whatever they are, the snapshot can be built.
inline io::ClusterReading read(const std::vector<std::string>& items,
                               const io::KubernetesReadOptions& options = {}) {
    auto reading = io::kubernetes_from_text(list(items), options, "t");
    static_cast<void>(Cluster::build(reading.cluster));
    return reading;
}

inline const TaskSpec& task(const io::ClusterReading& reading, const std::string& name) {
    for (const auto& found : reading.cluster.tasks)
        if (found.name == "default/" + name || found.name == name) return found;
    FAIL("no task " + name);
    return reading.cluster.tasks.front();
}

/// Whether the task may be placed on, or moved to, the node.
inline bool fits(const Cluster& cluster, const std::string& task, const std::string& node) {
    return find_obstacle(cluster, cluster.find_task("default/" + task), cluster.find_node(node)) ==
           Obstacle::none;
}

}  // namespace kubernetes_text
