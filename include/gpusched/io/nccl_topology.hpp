// SPDX-License-Identifier: Apache-2.0
// Topology files of NCCL and RCCL as machines.
#pragma once

#include <gpusched/io/hardware_reading.hpp>

#include <string>
#include <string_view>

namespace gpusched::io {

/// Reads a topology in the XML of NCCL (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE) or RCCL.
///
/// `cpu` is a NUMA node with its CPUs, nested `pci` are PCIe switches with their link's speed, `gpu` a GPU with the
/// index `dev`, `nvlink` and `xgmi` its links; to NVSwitches they reach every GPU that has links to the same ones.
/// Everything below one outermost `pci` shares a PCIe root. Without any `gpu` element, devices of the PCI classes
/// 0302, 0380 and 1200 are the GPUs, numbered by ascending bus id as the driver does. Sockets are not in the file:
/// `numa_nodes_per_socket` NUMA nodes, by ascending id, make one. Network cards are left out.
/// @throws InvalidInput with every problem, each with source and line: a text that is not XML, a file of graphs
///         (NCCL_GRAPH_FILE), attributes that are missing or out of range, NUMA nodes or GPUs that occur twice, no
///         hint which devices are GPUs; and for options out of range
/// @throws BackendError when the file cannot be read, and when the library was built without pugixml
[[nodiscard]] HardwareReading read_nccl_topology(const std::string& path,
                                                 const HardwareReadOptions& options = {});

/// The same from text.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  what messages call the text
[[nodiscard]] HardwareReading nccl_topology_from_xml(std::string_view text,
                                                     const HardwareReadOptions& options = {},
                                                     std::string_view source = "<text>");

}  // namespace gpusched::io
