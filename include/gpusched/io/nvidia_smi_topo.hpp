// SPDX-License-Identifier: Apache-2.0
// The matrix of `nvidia-smi topo -m` as a machine.
#pragma once

#include <gpusched/io/hardware_reading.hpp>

#include <string>
#include <string_view>

namespace gpusched::io {

/// Reads the matrix that `nvidia-smi topo -m` prints.
///
/// Columns may be aligned by tabs or by two and more spaces; reading stops at a line that has "Legend:". Rows and
/// columns that are not GPUs (network cards) only tell which GPUs share a PCIe switch or host bridge. PIX and PXB
/// become PCIe switches, PHB a common PCIe root, NV# an NVLink edge of # links; between NVLink neighbours the matrix
/// does not show the path over PCIe, so those share a root only where a third device tells.
///
/// NUMA nodes are those of the column "NUMA Affinity"; where it is missing or N/A, GPUs with the same CPUs share one.
/// Sockets are not in the matrix: `numa_nodes_per_socket` NUMA nodes, by ascending id, make one. CPUs are those near
/// GPUs; other NUMA nodes and their cores are not known.
/// @throws InvalidInput with every problem, each with source and line: no matrix at all, a matrix of
///         `nvidia-smi topo -p2p`, unknown entries, rows that are missing or too short, entries that contradict each
///         other, more than 64 GPUs; and for options out of range
/// @throws BackendError when the file cannot be read
[[nodiscard]] HardwareReading read_nvidia_smi_topo(const std::string& path,
                                                   const HardwareReadOptions& options = {});

/// The same from text.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  what messages call the text
[[nodiscard]] HardwareReading nvidia_smi_topo_from_text(std::string_view text,
                                                        const HardwareReadOptions& options = {},
                                                        std::string_view source = "<text>");

}  // namespace gpusched::io
