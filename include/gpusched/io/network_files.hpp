// SPDX-License-Identifier: Apache-2.0
// Reads networks: Slurm's topology.conf and topology.yaml, Topology objects and labels of Kubernetes nodes.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/model/spec.hpp>
#include <gpusched/topology/network_tree.hpp>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::io {

/// A network as it was read: which nodes are below which domains.
struct NetworkReading {
    struct Node {
        std::string name{};
        std::vector<std::string>
            network{};  ///< domains from the root down, as in NodeSpec; empty = not known
        bool operator==(const Node&) const = default;
    };
    std::vector<Node> nodes{};  ///< in the order of the text; names are unique
    std::vector<std::string>
        levels{};  ///< what the levels are called, from the top; empty when the text has no words
    std::vector<std::string> notes{};  ///< what was inferred, or what a tree cannot hold
};

/// The tree over the nodes of a reading; NodeId is the position in `nodes`. O(nodes x levels).
/// @throws InvalidInput when there are more than 16 levels
[[nodiscard]] topology::NetworkTree network_tree(const NetworkReading& reading);

/// Sets `NodeSpec::network` of every node that the reading names; the others keep theirs.
/// @return how many nodes were set
/// Complexity: O(nodes log nodes).
std::size_t set_network(ClusterSpec& cluster, const NetworkReading& reading);

struct SlurmTopologyOptions {
    std::string
        topology{};  ///< which one of topology.yaml; empty = the default of the cluster, or the only one
};
template <class F>
constexpr void visit_fields(std::type_identity<SlurmTopologyOptions>, F&& field) {
    field("topology", &SlurmTopologyOptions::topology);
}

/// Reads Slurm's topology.conf: switches over switches and nodes (plugin topology/tree), or blocks (topology/block).
///
/// Lines are `SwitchName= Switches= Nodes=` or `BlockName= Nodes=` and `BlockSizes=`, with host lists such as
/// `node[01-04,7]`; key words in any case, comments after #, lines continued by a backslash. Switches without one above
/// are roots; there may be several. Each block is a domain; the sizes after the first, in nodes, join neighbouring
/// blocks to domains above, named after their first and last block.
/// @param text    at most `largest_document` bytes
/// @param source  what messages call the text
/// @throws InvalidInput with every problem, each with source and line: unknown key words, lists that are none,
///         switches without a line, with two above or above themselves, nodes below two, names that occur twice,
///         switches beside blocks, sizes that are no multiples, more than 16 levels
[[nodiscard]] NetworkReading slurm_topology_from_conf(std::string_view text,
                                                      std::string_view source = "<text>");

/// Reads Slurm's topology.yaml: a list of topologies of kind tree, block, ring or torus3d.
///
/// Trees and blocks are those of topology.conf. Rings and tori become domains without the order inside, as `notes` say.
/// @throws InvalidInput as above, with JSON pointers, and when no topology or several are meant, or it is flat
/// @throws BackendError when the library was built without libyaml
[[nodiscard]] NetworkReading slurm_topology_from_yaml(std::string_view text,
                                                      const SlurmTopologyOptions& options = {},
                                                      std::string_view source = "<text>");

/// Reads the network of Slurm's topology.conf, or of topology.yaml when the file's name ends in .yaml, .yml or .json.
///
/// Switches without one above are roots; there may be several. Each block is a domain; the block sizes after the first,
/// in nodes, join neighbouring blocks to domains above. Rings and tori become domains without the order inside.
/// @throws BackendError when the file cannot be read, and for YAML when the library was built without libyaml
/// @throws InvalidInput with every problem, each with source and line or JSON pointer
[[nodiscard]] NetworkReading read_slurm_topology(const std::string& path,
                                                 const SlurmTopologyOptions& options = {});

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
