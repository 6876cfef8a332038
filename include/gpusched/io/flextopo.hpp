// SPDX-License-Identifier: Apache-2.0
// FlexTopo objects as machines with their allocation state.
#pragma once

#include <gpusched/io/hardware_reading.hpp>

#include <string>
#include <string_view>

namespace gpusched::io {

/// Reads a FlexTopo custom resource (YAML or JSON): sockets, NUMA nodes, core groups, cores and GPUs, and who uses them.
///
/// Vertices have an id that ends in their number. What an edge means follows from the vertices at its ends, whichever
/// way it leads: those of the paper (socket hosts core group, core group contains core, core group or core localized
/// to NUMA node, GPU nearby NUMA node) and those that the collector writes (socket contains NUMA node, which contains
/// core groups). Attributes may be text or numbers, and their names are told apart without case and underscores:
/// status (free; used, allocated; failed, unhealthy), usedBy, uuid, name or model, memoryTotal or memory (MiB).
///
/// When no GPU has an edge, GPUs are spread over the NUMA nodes by ascending number, as many to each, and `notes` says
/// so; `HardwareGraph::reconcile` with another reading corrects it. Of `options`, the bandwidths are used.
/// @throws InvalidInput with every problem, each with source and JSON pointer: no FlexTopo object or several, such as
///         the definition of the resource; ids without a number, unknown types, edges between vertices that have none;
///         cores in no group, groups near no NUMA node; and for options out of range
/// @throws BackendError when the file cannot be read, and for YAML when the library was built without libyaml
[[nodiscard]] HardwareReading read_flextopo(const std::string& path, const HardwareReadOptions& options = {});

/// The same from text.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  what messages call the text
[[nodiscard]] HardwareReading flextopo_from_text(std::string_view text,
                                                 const HardwareReadOptions& options = {},
                                                 std::string_view source = "<text>");

}  // namespace gpusched::io
