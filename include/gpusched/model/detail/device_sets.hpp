// SPDX-License-Identifier: Apache-2.0
// Which devices of a node are of which class, and which of them a task takes.
#pragma once

#include <gpusched/model/inventory.hpp>

namespace gpusched::detail {

/// The node's devices of a class.
[[nodiscard]] inline GpuMask devices_of_class(const Inventory& inventory, NodeId node,
                                              std::uint32_t device_class) noexcept {
    for (const auto& one : inventory.node_devices[inventory.nodes.devices[index(node)]].classes)
        if (one.device_class == device_class) return one.devices;
    return 0;
}
/// As many as the task asks for of `free`, devices of the node: the lowest of the first class it accepts that has enough; 0
/// where none has.
[[nodiscard]] inline GpuMask choose_devices(const Inventory& inventory, const Extras& extras, NodeId node,
                                            GpuMask free) noexcept {
    if (extras.device_count == 0) return 0;
    for (const auto device_class : extras.device_classes) {
        const auto here = free & devices_of_class(inventory, node, device_class);
        if (gpu_count(here) >= extras.device_count) return lowest_gpus(here, extras.device_count);
    }
    return 0;
}
/// True for as many devices as the task asks for, all of one class that it accepts.
[[nodiscard]] inline bool are_of_one_class(const Inventory& inventory, const Extras& extras, NodeId node,
                                           GpuMask devices) noexcept {
    return gpu_count(devices) == extras.device_count &&
           (devices == 0 || choose_devices(inventory, extras, node, devices) == devices);
}

}  // namespace gpusched::detail
