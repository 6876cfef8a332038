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

/// A network as it was read: the domains above each node.
struct NetworkReading {
    struct Node {
        std::string name{};
        std::vector<std::string> network{};  ///< domains from the root down, as in NodeSpec; empty = unknown
        bool operator==(const Node&) const = default;
    };
    std::vector<Node> nodes{};          ///< in the order of the text; names are unique
    std::vector<std::string> levels{};  ///< names of the levels, from the top; empty if the text has none
    std::vector<std::string> notes{};   ///< facts that were inferred, or that a tree cannot hold
};

/// The tree over the nodes of a reading; NodeId is the position in `nodes`. O(nodes x levels).
/// @throws InvalidInput for more than 16 levels
[[nodiscard]] topology::NetworkTree network_tree(const NetworkReading& reading);

/// Sets `NodeSpec::network` of every node that the reading names; the others keep theirs. O(nodes log nodes).
/// @return how many nodes were set
std::size_t set_network(ClusterSpec& cluster, const NetworkReading& reading);

struct SlurmTopologyOptions {
    std::string topology{};  ///< name in topology.yaml; empty = the default of the cluster, or the only one
};
template <class F>
constexpr void visit_fields(std::type_identity<SlurmTopologyOptions>, F&& field) {
    field("topology", &SlurmTopologyOptions::topology);
}

/// Reads Slurm's topology.conf: switches over switches and nodes (plugin topology/tree), or blocks
/// (topology/block).
///
/// Lines are `SwitchName= Switches= Nodes=` or `BlockName= Nodes=` and `BlockSizes=`, with host lists such as
/// `node[01-04,7]`; key words in any case, comments after #, lines continued by a backslash. Switches without
/// a parent are roots; there may be several. Each block is a domain. The sizes after the first, in nodes,
/// join neighbouring blocks to domains above, named after their first and last block.
/// @param text    at most `largest_document` bytes
/// @param source  name of the text in messages
/// @throws InvalidInput with every problem, each with source and line: unknown key words, malformed lists,
///         switches without a line, with two parents or above themselves, nodes below two switches, names
///         that occur twice, switches next to blocks, sizes that are no multiples, more than 16 levels
[[nodiscard]] NetworkReading slurm_topology_from_conf(std::string_view text,
                                                      std::string_view source = "<text>");

/// Reads Slurm's topology.yaml: a list of topologies of kind tree, block, ring or torus3d.
///
/// Trees and blocks are those of topology.conf. Rings and tori become domains without the order inside, as
/// `notes` say.
/// @throws InvalidInput as above, with JSON pointers, and if no topology or several are selected, or it is
///         flat
/// @throws BackendError if the library was built without libyaml
[[nodiscard]] NetworkReading slurm_topology_from_yaml(std::string_view text,
                                                      const SlurmTopologyOptions& options = {},
                                                      std::string_view source = "<text>");

/// Reads the network of Slurm's topology.conf, or of topology.yaml if the text is a list of topologies in
/// YAML or JSON.
///
/// Switches without a parent are roots; there may be several. Each block is a domain. The block sizes after
/// the first, in nodes, join neighbouring blocks to domains above. Rings and tori become domains without the
/// order inside.
/// @throws BackendError if the file cannot be read, and for YAML if the library was built without libyaml
/// @throws InvalidInput with every problem, each with source and line or JSON pointer
[[nodiscard]] NetworkReading read_slurm_topology(const std::string& path,
                                                 const SlurmTopologyOptions& options = {});

/// The content of a Topology object: the labels that name a node's domains, from the top.
struct TopologyLevels {
    std::string name{};                      ///< of the object
    std::vector<std::string> node_labels{};  ///< may end with kubernetes.io/hostname, the node itself
    bool operator==(const TopologyLevels&) const = default;
};

struct KubernetesTopologyOptions {
    std::string topology{};  ///< name of the Topology object; empty = the only one
};
template <class F>
constexpr void visit_fields(std::type_identity<KubernetesTopologyOptions>, F&& field) {
    field("topology", &KubernetesTopologyOptions::topology);
}

/// Reads a Topology of Kueue (kueue.x-k8s.io) or the KAI scheduler (kai.scheduler). The text, YAML or JSON,
/// may hold other objects, too.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  name of the text in messages
/// @throws InvalidInput with every problem, each with source and JSON pointer: no Topology, or several and
///         none named; no levels, more than 16, labels that are missing or occur twice
/// @throws BackendError for YAML if the library was built without libyaml
[[nodiscard]] TopologyLevels topology_levels_from_text(std::string_view text,
                                                       const KubernetesTopologyOptions& options = {},
                                                       std::string_view source = "<text>");

/// Reads names and labels of Node objects, such as `kubectl get nodes -o json` prints.
/// @throws InvalidInput as above: no Node, names that are missing or occur twice, labels that are not text
/// @throws BackendError for YAML if the library was built without libyaml
[[nodiscard]] std::vector<NodeSpec> labelled_nodes_from_text(std::string_view text,
                                                             std::string_view source = "<text>");

/// Places nodes by their labels. A node without a level's label is placed down to the level above only.
///
/// As in Kueue, the labels from the top down identify a domain: equal values below different domains are
/// different domains. The name of such a domain, or of a value that occurs on several levels, includes the
/// domains above it: `block-a/rack-1`. `set_network` writes the result into a snapshot.
[[nodiscard]] NetworkReading network_from_labels(const TopologyLevels& levels,
                                                 std::span<const NodeSpec> nodes);

/// Reads a file with a Topology and one with nodes; they may be one file.
/// @throws BackendError also if a file cannot be read
/// @throws InvalidInput as the functions above
[[nodiscard]] NetworkReading read_kubernetes_topology(const std::string& topology_path,
                                                      const std::string& nodes_path,
                                                      const KubernetesTopologyOptions& options = {});

}  // namespace gpusched::io
