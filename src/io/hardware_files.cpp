// SPDX-License-Identifier: Apache-2.0
#include "io/other_snapshots.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/io/flextopo.hpp>
#include <gpusched/io/hardware_files.hpp>
#include <gpusched/io/hwloc.hpp>
#include <gpusched/io/nccl_topology.hpp>
#include <gpusched/io/nvidia_smi_topo.hpp>

namespace gpusched::io {

GPUSCHED_EXPORT std::optional<HardwareFormat> hardware_format(std::string_view text) {
    const auto start = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    if (start == text.npos) return std::nullopt;
    if (text[start] == '<') {
        if (text.find("<system") != text.npos || text.find("<graphs") != text.npos)
            return HardwareFormat::nccl;
        if (text.find("<topology") != text.npos) return HardwareFormat::hwloc;
        return std::nullopt;
    }
    if (text.find("FlexTopo") != text.npos) return HardwareFormat::flextopo;
    if (text.find("GPU0") != text.npos) return HardwareFormat::nvidia_smi;
    return std::nullopt;
}

GPUSCHED_EXPORT HardwareReading hardware_from_text(std::string_view text, const HardwareReadOptions& options,
                                                   std::string_view source) {
    const auto format = hardware_format(text);
    if (format == HardwareFormat::nvidia_smi) return nvidia_smi_topo_from_text(text, options, source);
    if (format == HardwareFormat::nccl) return nccl_topology_from_xml(text, options, source);
    if (format == HardwareFormat::hwloc) return hwloc_from_xml(text, options, source);
    if (format == HardwareFormat::flextopo) return flextopo_from_text(text, options, source);
    const auto found = detail::found_snapshot(text);
    throw InvalidInput(std::string(source) +
                       ": expected a machine: the matrix of 'nvidia-smi topo -m', topology XML of NCCL or "
                       "hwloc, or a FlexTopo object" +
                       (found.told.empty() ? "" : ", found " + found.told));
}

GPUSCHED_EXPORT HardwareReading read_hardware(const std::string& path, const HardwareReadOptions& options) {
    return hardware_from_text(read_file(path), options, path);
}

}  // namespace gpusched::io
