// SPDX-License-Identifier: Apache-2.0
// Machines from any of the formats that are read.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/io/hardware_reading.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusched::io {

/// The formats of machines.
enum class HardwareFormat : std::uint8_t { nvidia_smi, nccl, hwloc, flextopo };
constexpr auto enum_names(HardwareFormat) {
    return name_table<HardwareFormat>({
        {HardwareFormat::nvidia_smi, "nvidia_smi"},
        {HardwareFormat::nccl, "nccl"},
        {HardwareFormat::hwloc, "hwloc"},
        {HardwareFormat::flextopo, "flextopo"},
    });
}

/// Which format a text seems to have: told from its first words, without reading it. None when it is none of them.
[[nodiscard]] std::optional<HardwareFormat> hardware_format(std::string_view text);

/// Reads a machine in any of the formats.
/// @throws InvalidInput when it is in none of them, and as the reader of its format does
/// @throws BackendError when the file cannot be read, and as the reader of its format does
[[nodiscard]] HardwareReading read_hardware(const std::string& path, const HardwareReadOptions& options = {});

/// The same from text.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  what messages call the text
[[nodiscard]] HardwareReading hardware_from_text(std::string_view text,
                                                 const HardwareReadOptions& options = {},
                                                 std::string_view source = "<text>");

}  // namespace gpusched::io
