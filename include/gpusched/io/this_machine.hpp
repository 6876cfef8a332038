// SPDX-License-Identifier: Apache-2.0
// The machine that the program runs on, asked of the hwloc library.
#pragma once

#include <gpusched/io/hardware_reading.hpp>

#include <string>

namespace gpusched::io {

/// Reads the machine that the program runs on, as the hwloc library sees it; what `read_hwloc` says about objects holds.
///
/// The library is loaded when this is called, so that nobody else needs it. Which GPUs and links it knows depends on its
/// plugins (CUDA, NVML, RSMI); without them GPUs are known by their PCI class. It heeds its environment variables:
/// with HWLOC_XMLFILE it reads a file of another machine, in older versions of the format, too.
/// @param library  name or path of the shared library, of versions 2 of its interface
/// @throws BackendError when the library cannot be loaded, is of another version, or fails, and when gpusched was built
///         without pugixml
/// @throws InvalidInput as `read_hwloc` does
[[nodiscard]] HardwareReading read_this_machine(const HardwareReadOptions& options = {},
                                                const std::string& library = "libhwloc.so.15");

}  // namespace gpusched::io
