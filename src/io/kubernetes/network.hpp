// SPDX-License-Identifier: Apache-2.0
// Network: the domains of nodes by their labels.
#pragma once

#include "io/kubernetes/objects.hpp"
#include "io/report_builder.hpp"

#include <gpusched/io/kubernetes.hpp>
#include <gpusched/io/kubernetes_topology.hpp>
#include <gpusched/io/network_reading.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace gpusched::io::detail::kubernetes {

/// The labels that say where nodes are: of the options, of the only Topology, or of NVIDIA's topograph.
inline TopologyLevels levels_of(const Objects& objects, const KubernetesReadOptions& options,
                                const ClusterSpec& cluster, ReportBuilder& report) {
    if (!options.network_labels.empty()) return {.name = "options", .node_labels = options.network_labels};
    const auto& topologies = objects.of(Kind::topology);
    if (topologies.size() == 1) {
        Problems problems;
        TopologyLevels levels{.name = topologies.front()["metadata"]["name"].text().value_or("")};
        for (const auto& level : topologies.front()["spec"]["levels"].items()) {
            const auto label = level["nodeLabel"].text().value_or("");
            if (!label.empty() && std::find(levels.node_labels.begin(), levels.node_labels.end(), label) ==
                                      levels.node_labels.end())
                levels.node_labels.push_back(label);
        }
        if (levels.node_labels.size() <= 16) {
            report.exact("Topology", "levels");
            return levels;
        }
        report.ignored("Topology", "objects", Errs::too_strict, "more than 16 levels", levels.name);
        return {};
    }
    for (const auto& topology : topologies)
        report.ignored("Topology", "objects", Errs::too_strict,
                       "there are several: network_labels says which labels hold", described(topology));
    TopologyLevels levels{.name = "topograph"};
    for (const char* const key :
         {"network.topology.nvidia.com/core", "network.topology.nvidia.com/spine",
          "network.topology.nvidia.com/leaf", "network.topology.nvidia.com/accelerator"})
        if (std::any_of(cluster.nodes.begin(), cluster.nodes.end(),
                        [&](const NodeSpec& node) { return node.labels.contains(key); }))
            levels.node_labels.emplace_back(key);
    return levels;
}

/// @return the label of each level of the network; empty where positions are unknown
inline std::vector<std::string> place_in_network(const Objects& objects, const KubernetesReadOptions& options,
                                                 ClusterSpec& cluster, ReportBuilder& report) {
    const auto levels = levels_of(objects, options, cluster, report);
    if (levels.node_labels.empty()) {
        if (objects.of(Kind::topology).empty())
            report.absent("Topology", "where nodes are in the network: unknown");
        return {};
    }
    // Names of domains join values by slashes; Kubernetes allows none in them.
    for (const auto& node : cluster.nodes)
        for (const auto& key : levels.node_labels)
            if (const auto label = node.labels.find(key);
                label != node.labels.end() && label->second.find('/') != std::string::npos) {
                report.ignored("Node", "network", Errs::either, "a label has a slash: positions are unknown",
                               node.name + ": " + key);
                return {};
            }
    const auto reading = network_from_labels(levels, cluster);
    set_network(cluster, reading);
    std::int64_t placed = 0;
    for (const auto& node : cluster.nodes) placed += node.network.empty() ? 0 : 1;
    std::string labels;
    for (const auto& level : levels.node_labels) labels += (labels.empty() ? "" : ", ") + level;
    if (placed > 0) report.exact("Node", "network by " + labels, placed);
    for (const auto& note : reading.notes) report.approximated("Node", "network", Errs::neither, note, "");
    return levels.node_labels;
}

}  // namespace gpusched::io::detail::kubernetes
