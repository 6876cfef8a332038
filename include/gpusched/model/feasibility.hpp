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
#include <string_view>
#include <vector>

namespace gpusched::detail {

/// The node's devices of a class.
[[nodiscard]] inline GpuMask devices_of_class(const Inventory& inventory, NodeId node,
                                              std::uint32_t device_class) noexcept {
    for (const auto& one : inventory.node_devices[inventory.nodes.devices[index(node)]].classes)
        if (one.device_class == device_class) return one.devices;
    return 0;
}
/// Chooses the requested number of devices among the `free` ones of the node: the lowest of the first
/// accepted class that has enough; 0 if no class has enough.
[[nodiscard]] inline GpuMask choose_devices(const Inventory& inventory, const Extras& extras, NodeId node,
                                            GpuMask free) noexcept {
    if (extras.device_count == 0) return 0;
    for (const auto device_class : extras.device_classes) {
        const auto here = free & devices_of_class(inventory, node, device_class);
        if (gpu_count(here) >= extras.device_count) return lowest_gpus(here, extras.device_count);
    }
    return 0;
}
/// True if `devices` are as many as requested, all of one accepted class.
[[nodiscard]] inline bool are_of_one_class(const Inventory& inventory, const Extras& extras, NodeId node,
                                           GpuMask devices) noexcept {
    return gpu_count(devices) == extras.device_count &&
           (devices == 0 || choose_devices(inventory, extras, node, devices) == devices);
}

}  // namespace gpusched::detail

namespace gpusched {

/// The first constraint that keeps a task off a node, in the order of the checks.
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
    avoid,    ///< the domain holds members of a group that the task avoids, or tasks that avoid its groups
    near,     ///< the domain holds no task that is a member of the required groups
    spread,   ///< the domain would exceed another one by too many members
    gang,     ///< of evictions: they would break a gang, some tasks of which cannot be evicted
    disruption_budget,  ///< of evictions: more tasks of a budget would be down than it allows
    waiting,            ///< of a job: it does not wait for room (model/waiting.hpp)
    not_ready,          ///< the node is not ready, or has another taint of Kubernetes about its state
};

/// The words of messages: those of Slurm if the tasks are of Slurm, else those of Kubernetes.
struct Words {
    std::string_view task;    ///< "task" or "pod"
    std::string_view owner;   ///< of tasks: "job" or "owner"
    std::string_view fixed;   ///< why a task never moves
    std::string_view closed;  ///< of nodes that receive no tasks: "drained" or "cordoned"
    std::string_view reopen;  ///< lets such a node receive tasks: "resume" or "uncordon"
};
[[nodiscard]] Words words_of(const Inventory& inventory);

/// The domains of a level in the words of the cluster: "node", "domain of label 'rack'", or, without a label
/// that names them, "domain of network level 1, like 'rack-1'". O(nodes x labels)
[[nodiscard]] std::string describe_level(const Inventory& inventory, Level level);

/// An obstacle in the words of messages, such as "too few idle GPUs".
[[nodiscard]] std::string_view in_words(Obstacle obstacle) noexcept;

/// The first constraint that forbids `task` on `node`, given everything else that runs or is reserved there.
///
/// A placed task is treated as a moving one (make before break): its old copy does not count in its groups,
/// but keeps its resources, and a required network level binds the new copy to the domain of the old one.
/// `not_eligible` stands for the four static reasons. O(1) expected.
[[nodiscard]] Obstacle find_obstacle(const Cluster& cluster, TaskId task, NodeId node) noexcept;

/// `gpu_model`, `node_selector`, `node_affinity`, `taint` or `none`; `cordoned` or `not_ready` for a taint of
/// Kubernetes that tells the state of the node. Ignores all other constraints.
[[nodiscard]] Obstacle find_eligibility_obstacle(const Cluster& cluster, TaskId task, NodeId node);

/// Checks only CPU, memory, named resources, devices, GPU, GPU memory and guaranteed hardware locality.
[[nodiscard]] Obstacle find_resource_obstacle(const Cluster& cluster, TaskId task, NodeId node) noexcept;

/// Checks only anti-affinity, affinity, required network levels, and the constraints avoid, near and spread.
/// @param ignored one of these that is skipped; `none` = all count
[[nodiscard]] Obstacle find_group_obstacle(const Cluster& cluster, TaskId task, NodeId node,
                                           Obstacle ignored = Obstacle::none) noexcept;

/// The GPUs of `node` that could each serve the task now: completely free ones for whole GPUs, or those with
/// enough free capacity for a fraction. They also have enough free GPU memory if the node models it. 0 for
/// tasks without GPUs.
[[nodiscard]] GpuMask candidate_gpus(const Cluster& cluster, TaskId task, NodeId node) noexcept;

/// The default choice of devices besides whole GPUs: the lowest free ones of the first accepted class that
/// has enough. 0 if the task requests none, or if no class has enough.
[[nodiscard]] inline GpuMask free_devices_for(const Cluster& cluster, TaskId task, NodeId node) noexcept;

/// True if the task can take exactly these GPUs now (count, freedom, memory, guaranteed locality).
[[nodiscard]] bool gpus_fit(const Cluster& cluster, TaskId task, NodeId node, GpuMask gpus) noexcept;

/// GPU sets of which one must contain all GPUs of the task. Empty if there is no such constraint, or if the
/// hardware of the node is unknown, so that the constraint does not hold (`unknown` is true).
struct Localities {
    std::span<const GpuMask> masks;
    bool unknown = false;
};
[[nodiscard]] Localities guaranteed_localities(const Cluster& cluster, TaskId task, NodeId node) noexcept;

namespace detail {
/// The reason why a node is closed, between `before` and `after`; empty if the cluster does not have it.
[[nodiscard]] std::string closed_reason(const Inventory& inventory, NodeId node, std::string_view before = "",
                                        std::string_view after = "");

/// Named resources and devices.
[[nodiscard]] Obstacle find_extras_obstacle(const Cluster& cluster, TaskId task, NodeId node) noexcept;

/// The group constraint that forbids a placement.
struct GroupConflict {
    Obstacle obstacle = Obstacle::none;
    std::uint32_t set = 0;  ///< index into Inventory::group_sets
    /// Anti-affinity and spread: the members that the domain would have. Avoid: the number of conflicting
    /// tasks.
    std::uint32_t members = 0;
    /// Anti-affinity and spread: the members that it may have. Avoid: 1 if the other tasks avoid this one,
    /// else 0.
    std::uint32_t limit = 0;
};
[[nodiscard]] GroupConflict find_group_conflict(const Cluster& cluster, TaskId task, NodeId node,
                                                Obstacle ignored = Obstacle::none) noexcept;
/// All group constraints that forbid a placement, each asked alone.
[[nodiscard]] std::vector<GroupConflict> list_group_conflicts(const Cluster& cluster, TaskId task,
                                                              NodeId node);
/// Describes the shortage of a named resource: "needs 4 of 'rdma/hca', has 1 free (3 short)".
[[nodiscard]] std::string describe_resource(std::string_view resource, std::int64_t needs, std::int64_t free);
/// An amount of a named resource, with its unit if it is counted in MiB.
[[nodiscard]] std::string amount_text(std::string_view resource, std::int64_t amount);
/// Describes a group constraint that forbids a placement.
[[nodiscard]] std::string describe_conflict(const Cluster& cluster, TaskId task, NodeId node,
                                            const GroupConflict& conflict);
}  // namespace detail

inline GpuMask free_devices_for(const Cluster& cluster, TaskId task, NodeId node) noexcept {
    const auto& inv = cluster.inventory();
    return inv.tasks.is(TaskTrait::extras, task)
               ? detail::choose_devices(inv, inv.extras[inv.tasks.extras[index(task)]], node,
                                        cluster.free_devices(node))
               : GpuMask{0};
}

/// Describes the first constraint that keeps `task` off `node` (see `find_obstacle`), with the required and
/// the actual value: the GPU model, label or taint, the missing amount of a resource, the members of a group.
///
/// @return text that continues "does not fit: ", such as `the node's GPU model is 'B'; the task accepts 'A'`;
///     empty if the task fits
///
/// For messages only: it takes far longer than `find_obstacle`.
[[nodiscard]] std::string describe_obstacle(const Cluster& cluster, TaskId task, NodeId node);
/// Describes one constraint that keeps `task` off `node`, regardless of the constraints that are checked before
/// it. Empty for `none`, and for constraints on evictions.
[[nodiscard]] std::string describe_obstacle(const Cluster& cluster, TaskId task, NodeId node,
                                            Obstacle obstacle);

}  // namespace gpusched
