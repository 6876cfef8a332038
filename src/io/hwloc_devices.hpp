// SPDX-License-Identifier: Apache-2.0
// Which devices in a topology of hwloc are GPUs.
#pragma once

#include <gpusched/core/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace gpusched::io::detail {

/// The libraries by whose devices hwloc knows GPUs, the best numbering first.
inline constexpr std::array<std::string_view, 5> gpu_libraries{"nvml", "rsmi", "cuda", "ze", "opencl"};

/// `nvml3` -> (nvml, 3); `opencl0d2` -> (opencl, 2).
inline std::optional<std::pair<std::size_t, int>> gpu_library_device(std::string_view name) {
    for (std::size_t b = 0; b < gpu_libraries.size(); ++b) {
        if (!name.starts_with(gpu_libraries[b])) continue;
        auto digits = name.substr(gpu_libraries[b].size());
        if (gpu_libraries[b] == "opencl") {
            const auto d = digits.find('d');
            if (d == digits.npos) return std::nullopt;
            digits.remove_prefix(d + 1);
        }
        int value = -1;
        if (!read_number(digits, value) || value < 0) return std::nullopt;
        return std::pair(b, value);
    }
    return std::nullopt;
}

/// What a PCI device is by its class, its vendor and its link alone.
enum class PciKind : std::uint8_t {
    gpu,
    display,  ///< a display adapter of NVIDIA (GeForce), or of AMD with a PCI Express link: likely a GPU
    other,    ///< among them the display adapters on servers' boards, AMD's old ones too
};

/// @param type "0300 [10de:2684] [subsystem] revision"
inline PciKind pci_kind(std::string_view type, double link_gb_s) {
    const auto id = type.substr(std::min<std::size_t>(type.size(), 5));
    const bool nvidia = id.starts_with("[10de:"), amd = id.starts_with("[1002:");
    if (type.starts_with("0302")) return PciKind::gpu;
    if (type.starts_with("0380") || type.starts_with("1200"))
        return nvidia || amd ? PciKind::gpu : PciKind::other;
    if (!type.starts_with("0300")) return PciKind::other;
    return nvidia || (amd && link_gb_s > 0) ? PciKind::display : PciKind::other;
}

}  // namespace gpusched::io::detail
