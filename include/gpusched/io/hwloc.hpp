// SPDX-License-Identifier: Apache-2.0
// Topologies of hwloc as machines.
#pragma once

#include <gpusched/io/hardware_reading.hpp>

#include <string>
#include <string_view>

namespace gpusched::io {

/// Reads a topology in the XML of hwloc (`lstopo --of xml`), versions 1 to 3 of the format.
///
/// Packages are sockets, in their order; NUMA nodes keep their OS index, those without CPUs (memory of GPUs) are left
/// out; cores have the number of their first CPU. Host bridges are PCIe roots, the bridges above a GPU PCIe switches
/// with the speed of their link at the time of the reading. GPUs are the PCI devices of class 0302, 0380 or 1200 (the
/// last two of AMD or NVIDIA) and those for which hwloc found a device of CUDA, NVML, RSMI, Level Zero or OpenCL; they
/// have the index of NVML, else of RSMI, CUDA, Level Zero or OpenCL, else by ascending bus id. A GPU is near a NUMA
/// node when the CPUs next to it are of one alone. The matrices NVLinkBandwidth and XGMIBandwidth give the links.
/// @throws InvalidInput with every problem, each with source and line: a text that is not XML or of another kind,
///         attributes that are missing or out of range, CPUs of two NUMA nodes, more than 64 GPUs; and for options
///         out of range
/// @throws BackendError when the file cannot be read, and when the library was built without pugixml
[[nodiscard]] HardwareReading read_hwloc(const std::string& path, const HardwareReadOptions& options = {});

/// The same from text.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  what messages call the text
[[nodiscard]] HardwareReading hwloc_from_xml(std::string_view text, const HardwareReadOptions& options = {},
                                             std::string_view source = "<text>");

}  // namespace gpusched::io
