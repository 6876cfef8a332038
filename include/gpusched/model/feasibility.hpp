// SPDX-License-Identifier: Apache-2.0
// Feasibility: whether a task can run on a node now, on which GPUs, and if not, why.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/inventory.hpp>

#include <cstdint>
#include <span>
#include <string>

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

namespace gpusched {

/// The first constraint that keeps a task off a node, in the order in which they are looked at.
enum class Obstacle : std::uint8_t {
    none,           ///< it fits
    cordoned,       ///< the node is unschedulable
    not_eligible,   ///< GPU model, node selector, node affinity or taint; see `find_eligibility_obstacle`
    gpu_model,      ///< the task does not accept the node's GPU model
    node_selector,  ///< a required label is missing
    node_affinity,  ///< no term of the node affinity holds
    taint,          ///< an untolerated NoSchedule or NoExecute taint
    cpu,
    memory,
    resource,  ///< not enough of a named resource
    device,    ///< not enough free devices of one accepted class
    gpu,       ///< not enough (healthy, entirely free) GPUs, or no GPU with enough left for the fraction
    gpu_memory,
    hardware,  ///< no set of GPUs within the guaranteed NUMA node or socket
    anti_affinity,
    affinity,
    network,  ///< the job must stay within another domain
    avoid,  ///< the domain holds members of a group that the task avoids, or tasks that avoid a group of its own
    near,               ///< the domain holds no task of the kind that it wants near
    spread,             ///< the domain would hold too many more members than another
    gang,               ///< of evictions: they would break a gang of which somebody may not leave
    disruption_budget,  ///< of evictions: more tasks of a budget would be down than may be
};
constexpr auto enum_names(Obstacle) {
    return name_table<Obstacle>({
        {Obstacle::none, "none"},
        {Obstacle::cordoned, "cordoned"},
        {Obstacle::not_eligible, "not_eligible"},
        {Obstacle::gpu_model, "gpu_model"},
        {Obstacle::node_selector, "node_selector"},
        {Obstacle::node_affinity, "node_affinity"},
        {Obstacle::taint, "taint"},
        {Obstacle::cpu, "cpu"},
        {Obstacle::memory, "memory"},
        {Obstacle::resource, "resource"},
        {Obstacle::device, "device"},
        {Obstacle::gpu, "gpu"},
        {Obstacle::gpu_memory, "gpu_memory"},
        {Obstacle::hardware, "hardware"},
        {Obstacle::anti_affinity, "anti_affinity"},
        {Obstacle::affinity, "affinity"},
        {Obstacle::network, "network"},
        {Obstacle::avoid, "avoid"},
        {Obstacle::near, "near"},
        {Obstacle::spread, "spread"},
        {Obstacle::gang, "gang"},
        {Obstacle::disruption_budget, "disruption_budget"},
    });
}

/// The first constraint that forbids `task` on `node`, given everything else that runs or is reserved there.
///
/// A placed task is judged as if it moved: its own present copy does not count against its groups, but it does
/// hold its resources (make-before-break), and a required network level binds the new copy to the old one's
/// domain. Reports `not_eligible` for the four static reasons at once. O(1) expected.
[[nodiscard]] Obstacle find_obstacle(const Cluster& cluster, TaskId task, NodeId node) noexcept;

/// `gpu_model`, `node_selector`, `node_affinity`, `taint` or `none`, whatever else is in the way.
[[nodiscard]] Obstacle find_eligibility_obstacle(const Cluster& cluster, TaskId task, NodeId node);

/// CPU, memory, named resources, devices, GPU, GPU memory and guaranteed hardware locality only.
[[nodiscard]] Obstacle find_resource_obstacle(const Cluster& cluster, TaskId task, NodeId node) noexcept;

/// Anti-affinity, affinity and required network level, groups to avoid, near and to spread only.
/// @param ignored one of these that does not count, as if nobody had asked for it; `none`: all count
[[nodiscard]] Obstacle find_group_obstacle(const Cluster& cluster, TaskId task, NodeId node,
                                           Obstacle ignored = Obstacle::none) noexcept;

/// The GPUs of `node` that could each serve the task now: entirely free ones for whole GPUs, those with enough
/// left for a fraction; with enough GPU memory where the node models it. 0 for tasks without GPUs.
[[nodiscard]] GpuMask candidate_gpus(const Cluster& cluster, TaskId task, NodeId node) noexcept;

/// The devices beside whole GPUs that the task takes where nobody says which: the lowest free ones of the first class it
/// accepts that has enough of them. 0 for tasks that ask for none, and where no class has enough.
[[nodiscard]] inline GpuMask free_devices_for(const Cluster& cluster, TaskId task, NodeId node) noexcept;

/// True if the task can take exactly these GPUs now (count, freedom, memory, guaranteed locality).
[[nodiscard]] bool gpus_fit(const Cluster& cluster, TaskId task, NodeId node, GpuMask gpus) noexcept;

/// The localities (GPU sets) of which one must hold all GPUs of the task; empty = no such constraint, or one
/// that the node's unknown hardware cannot show to hold (`unknown` is then set).
struct Localities {
    std::span<const GpuMask> masks;
    bool unknown = false;
};
[[nodiscard]] Localities guaranteed_localities(const Cluster& cluster, TaskId task, NodeId node) noexcept;

namespace detail {
/// Named resources and devices.
[[nodiscard]] Obstacle find_extras_obstacle(const Cluster& cluster, TaskId task, NodeId node) noexcept;

/// Which group forbids it, and how: index into Inventory::group_sets; for anti-affinity and spread how many members
/// the domain would have, and how many it may; for avoid how many tasks
/// are in the way, and a limit of 1 where it is they who avoid.
struct GroupConflict {
    Obstacle obstacle = Obstacle::none;
    std::uint32_t set = 0, members = 0, limit = 0;
};
[[nodiscard]] GroupConflict find_group_conflict(const Cluster& cluster, TaskId task, NodeId node,
                                                Obstacle ignored = Obstacle::none) noexcept;
}  // namespace detail

inline GpuMask free_devices_for(const Cluster& cluster, TaskId task, NodeId node) noexcept {
    const auto& inv = cluster.inventory();
    return inv.tasks.is(TaskTrait::extras, task)
               ? detail::choose_devices(inv, inv.extras[inv.tasks.extras[index(task)]], node,
                                        cluster.free_devices(node))
               : GpuMask{0};
}

/// The first constraint that keeps `task` off `node` (see `find_obstacle`), with what it asks for and what there is:
/// which GPU model, label or taint, how much of a resource is missing, which group has how many members.
///
/// @return words that go on after "does not fit: ", such as `the node's GPU model is 'B'; the task accepts 'A'`; empty
///     where nothing is in the way
///
/// Only for messages: it costs far more than `find_obstacle`.
[[nodiscard]] std::string describe_obstacle(const Cluster& cluster, TaskId task, NodeId node);

}  // namespace gpusched
