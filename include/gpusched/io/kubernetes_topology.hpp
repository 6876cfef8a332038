// SPDX-License-Identifier: Apache-2.0
// Topology objects of Kueue and the KAI scheduler, and the labels of nodes, as networks.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/io/network_reading.hpp>
#include <gpusched/model/spec.hpp>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::io {

/// What a Topology object says: which label names a node's domain, level by level from the top.
struct TopologyLevels {
    std::string name{};  ///< of the object
    std::vector<std::string>
        node_labels{};  ///< may end with kubernetes.io/hostname, which stands for the node itself
    bool operator==(const TopologyLevels&) const = default;
};

/// A node and its labels.
struct LabelledNode {
    std::string name{};
    std::map<std::string, std::string> labels{};
    bool operator==(const LabelledNode&) const = default;
};

struct KubernetesTopologyOptions {
    std::string topology{};  ///< name of the Topology object; empty = the only one
};
template <class F>
constexpr void visit_fields(std::type_identity<KubernetesTopologyOptions>, F&& field) {
    field("topology", &KubernetesTopologyOptions::topology);
}

/// Reads a Topology of Kueue (kueue.x-k8s.io) or the KAI scheduler (kai.scheduler): YAML or JSON, beside any other
/// objects.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  what messages call the text
/// @throws InvalidInput with every problem, each with source and JSON pointer: no Topology, or several and none named;
///         no levels, more than 16, labels that are missing or occur twice
/// @throws BackendError for YAML when the library was built without libyaml
[[nodiscard]] TopologyLevels topology_levels_from_text(std::string_view text,
                                                       const KubernetesTopologyOptions& options = {},
                                                       std::string_view source = "<text>");

/// Reads names and labels of Node objects, such as `kubectl get nodes -o json` prints.
/// @throws InvalidInput as above: no Node, names that are missing or occur twice, labels that are no text
/// @throws BackendError for YAML when the library was built without libyaml
[[nodiscard]] std::vector<LabelledNode> labelled_nodes_from_text(std::string_view text,
                                                                 std::string_view source = "<text>");

/// Places nodes by their labels. A node without a level's label is placed down to the level above only.
///
/// As in Kueue, a domain is what its labels from the top down say: equal values below different domains are different
/// domains. Such a value, and one that occurs on several levels, is named with what is above it: `block-a/rack-1`.
[[nodiscard]] NetworkReading network_from_labels(const TopologyLevels& levels,
                                                 std::span<const LabelledNode> nodes);

/// The same for the nodes of a snapshot; `set_network` writes the result into it.
[[nodiscard]] NetworkReading network_from_labels(const TopologyLevels& levels, const ClusterSpec& cluster);

/// Reads both files; they may be one.
/// @throws BackendError also when a file cannot be read
/// @throws InvalidInput as the functions above
[[nodiscard]] NetworkReading read_kubernetes_topology(const std::string& topology_path,
                                                      const std::string& nodes_path,
                                                      const KubernetesTopologyOptions& options = {});

}  // namespace gpusched::io
