// SPDX-License-Identifier: Apache-2.0
// Extras: what few tasks ask for beyond CPU, memory, GPUs and kinds of nodes: named resources, other devices, single nodes.
#pragma once

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/model/spec.hpp>

#include <cstdint>
#include <vector>

namespace gpusched {

/// The devices that a node has beside its whole GPUs, shared by all nodes alike in it.
struct NodeDevices {
    struct OfClass {
        std::uint32_t device_class = 0;  ///< index into Inventory::device_classes
        GpuMask devices = 0;
    };
    int first = 0;  ///< how many whole GPUs come before them
    std::vector<DeviceSpec> written;
    GpuMask all = 0;
    std::vector<OfClass> classes;
};

/// The nodes that a task singles out by name or by the label kubernetes.io/hostname. A kind of node of its own for each would
/// make as many kinds as there are nodes.
struct NodeSet {
    struct Named {
        NodeId node;
        bool allowed;
    };
    std::uint32_t requirement =
        no_node;  ///< the task's own: what any node must satisfy, as far as kinds of nodes go
    /// As written, of which `requirement` holds what does not single out nodes.
    Labels node_selector;
    std::vector<NodeTerm> node_affinity;
    std::vector<Named> named;        ///< by node
    std::uint32_t others = no_node;  ///< the requirement that all other nodes must satisfy
    static constexpr std::uint32_t no_node = 0xFFFFFFFFu;
};

/// Shared by all tasks alike in it.
struct Extras {
    struct Amount {
        std::uint32_t resource;  ///< index into Inventory::resource_names
        std::int64_t amount;     ///< more than 0
        bool operator==(const Amount&) const = default;
    };
    std::vector<Amount> resources;
    int device_count = 0;
    std::vector<std::uint32_t>
        device_classes;                    ///< index into Inventory::device_classes, in order of preference
    std::uint32_t node_set = no_node_set;  ///< index into Inventory::node_sets
    static constexpr std::uint32_t no_node_set = 0xFFFFFFFFu;
    bool operator==(const Extras&) const = default;
};

}  // namespace gpusched
