// SPDX-License-Identifier: Apache-2.0
// Hardware: the NUMA nodes and sockets of a machine with their GPUs and cores, and named presets.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/core/gpu_mask.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched {

/// Largest number of NUMA nodes with GPUs in one machine: some algorithms examine all sets of them.
inline constexpr int most_gpu_localities = 16;

/// One NUMA node: its socket, its number of cores and the GPUs attached to it.
struct NumaNode {
    int socket = 0;
    int cores = 0;
    GpuMask gpus = 0;
    bool operator==(const NumaNode&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<NumaNode>, F&& field) {
    field("socket", &NumaNode::socket, Required{}, within(0, 63));
    field("cores", &NumaNode::cores, Required{}, within(0, 1'000'000));
    field("gpus", &NumaNode::gpus);
}

/// The locality inside one machine: a named preset, or a description (`preset` empty).
struct Hardware {
    std::string preset;
    std::vector<NumaNode> numa_nodes;
    bool operator==(const Hardware&) const = default;

    [[nodiscard]] int cores() const;
    [[nodiscard]] GpuMask gpus() const;
    /// GPUs per socket, in socket order.
    [[nodiscard]] std::vector<GpuMask> socket_gpus() const;
};

/// The preset of that name, or nothing. Presets: `rtx4090x8` (2 sockets, 8 NUMA nodes, 64 cores, GPU i on
/// NUMA node i and socket i/4), `a100x8` (2 sockets, 2 NUMA nodes, 128 cores, GPU i on NUMA node and socket
/// i/4), `h100x8` (like `a100x8`, with 112 cores).
[[nodiscard]] std::optional<Hardware> hardware_preset(std::string_view name);
/// The names of the presets.
[[nodiscard]] std::vector<std::string_view> hardware_preset_names();

}  // namespace gpusched
