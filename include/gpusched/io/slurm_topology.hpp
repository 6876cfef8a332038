// SPDX-License-Identifier: Apache-2.0
// Slurm's topology.conf and topology.yaml as networks.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/io/network_reading.hpp>

#include <string>
#include <string_view>
#include <type_traits>

namespace gpusched::io {

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

}  // namespace gpusched::io
