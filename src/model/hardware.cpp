// SPDX-License-Identifier: Apache-2.0
// Presets and sums of the hardware of a machine.
#include <gpusched/config.hpp>
#include <gpusched/model/hardware.hpp>

#include <algorithm>
#include <array>

namespace gpusched {

namespace detail {
struct HardwarePreset {
    std::string_view name;
    int numa_nodes, cores;
};
constexpr std::array hardware_presets{HardwarePreset{"rtx4090x8", 8, 64}, HardwarePreset{"a100x8", 2, 128},
                                      HardwarePreset{"h100x8", 2, 112}};

// GPUs and cores spread evenly over the NUMA nodes, NUMA nodes evenly over two sockets, in index order.
static Hardware two_socket_machine(std::string_view name, int numa_nodes, int cores) {
    Hardware hardware{std::string(name), {}};
    const int gpus_each = 8 / numa_nodes;
    for (int i = 0; i < numa_nodes; ++i)
        hardware.numa_nodes.push_back({i * 2 / numa_nodes, cores / numa_nodes,
                                       static_cast<GpuMask>(first_gpus(gpus_each) << (i * gpus_each))});
    return hardware;
}
}  // namespace detail

GPUSCHED_EXPORT int Hardware::cores() const {
    int sum = 0;
    for (const auto& numa : numa_nodes) sum += numa.cores;
    return sum;
}

GPUSCHED_EXPORT GpuMask Hardware::gpus() const {
    GpuMask all = 0;
    for (const auto& numa : numa_nodes) all |= numa.gpus;
    return all;
}

GPUSCHED_EXPORT std::vector<GpuMask> Hardware::socket_gpus() const {
    std::vector<GpuMask> sockets;
    for (const auto& numa : numa_nodes) {
        const auto socket = static_cast<std::size_t>(numa.socket);
        if (socket >= sockets.size()) sockets.resize(socket + 1);
        sockets[socket] |= numa.gpus;
    }
    return sockets;
}

GPUSCHED_EXPORT std::optional<Hardware> hardware_preset(std::string_view name) {
    for (const auto& p : detail::hardware_presets)
        if (p.name == name) return detail::two_socket_machine(p.name, p.numa_nodes, p.cores);
    return std::nullopt;
}

GPUSCHED_EXPORT std::vector<std::string_view> hardware_preset_names() {
    std::vector<std::string_view> names;
    for (const auto& p : detail::hardware_presets) names.push_back(p.name);
    return names;
}

}  // namespace gpusched
