// SPDX-License-Identifier: Apache-2.0
// Which GPUs and other devices a running task holds: as its data says, or assigned if that is not known.
#pragma once

#include "model/check_specs.hpp"

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/inventory.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gpusched::detail {

/// The request of a task, which need not be in a cluster yet.
struct Demand {
    const std::string& name;
    std::int64_t cpu_milli, memory_mib, gpu_share_milli, gpu_memory_mib;
    int gpu_count;
    bool standby, lp;
    const Extras& extras;

    Demand(const TaskSpec& t, const Extras& asked)
        : name(t.name), cpu_milli(t.cpu_milli), memory_mib(t.memory_mib), gpu_share_milli(t.gpu_share_milli),
          gpu_memory_mib(t.gpu_memory_mib),
          gpu_count(static_cast<int>(std::clamp<std::int64_t>(t.gpu_count, 0, max_gpus_per_node))),
          standby(t.standby), lp(t.priority_class == PriorityClass::lp), extras(asked) {}
    Demand(const Inventory& inventory, TaskId task) : Demand(inventory, inventory.tasks, index(task)) {}

  private:
    Demand(const Inventory& inventory, const TaskTable& t, std::size_t i)
        : name(t.names[i]), cpu_milli(t.cpu_milli[i]), memory_mib(t.memory_mib[i]),
          gpu_share_milli(t.gpu_share_milli[i]), gpu_memory_mib(t.gpu_memory_mib[i]),
          gpu_count(t.gpu_count[i]), standby(t.standby[i] != 0), lp(t.priority_class[i] == PriorityClass::lp),
          extras(inventory.extras[t.extras[i]]) {}
};

/// The GPUs and other devices that the task lists; nothing after a problem.
inline std::optional<GpuMask> listed_gpus(const Cluster& cluster, const Demand& demand, const TaskSpec& task,
                                          NodeId node, Problems& problems) {
    const Owner owner("task", task.name);
    const auto on_node = [&] { return " on node " + gpusched::quoted(cluster.name(node)); };
    const int all = cluster.gpu_count(node) + gpu_count(cluster.devices(node));
    bool good = true;
    const auto mask = gpu_mask(
        task.gpus, all,
        [&](int gpu) {
            problems.add(concat(owner, ": holds GPU ", gpu, " of node ", gpusched::quoted(cluster.name(node)),
                                ", which has ", all));
            good = false;
        },
        [&](int gpu) {
            problems.add(concat(owner, ": lists GPU ", gpu, " twice"));
            good = false;
        });
    if (!good) return std::nullopt;
    const auto devices = mask & cluster.devices(node);
    if (const int whole = gpu_count(mask & ~devices); whole != demand.gpu_count) {
        problems.add(concat(owner, ": asks for ", task.gpu_count, task.gpu_count == 1 ? " GPU" : " GPUs",
                            ", but holds ", whole, on_node()));
        good = false;
    }
    if (!are_of_one_class(cluster.inventory(), demand.extras, node, devices)) {
        problems.add(
            concat(owner, ": asks for ", demand.extras.device_count,
                   demand.extras.device_count == 1 ? " device" : " devices",
                   (demand.extras.device_count == 0 ? "" : " of class " + either_of(task.device_classes)),
                   ", but holds ", (devices == 0 ? "none" : "others"), on_node()));
        good = false;
    }
    return good ? std::optional(mask) : std::nullopt;
}

/// The healthy GPUs with enough free capacity for the task, and enough free memory if the node models it.
inline GpuMask fitting_gpus(const Cluster& cluster, const Demand& task, NodeId node) {
    GpuMask fitting = 0;
    for (int g = 0; g < cluster.gpu_count(node); ++g)
        if (cluster.gpu_free_milli(node, g, task.lp ? Lent::yes : Lent::no) >= task.gpu_share_milli &&
            (task.gpu_memory_mib == 0 || cluster.inventory().nodes.gpu_memory_mib[index(node)] < 0 ||
             cluster.gpu_memory_free_mib(node, g) >= task.gpu_memory_mib))
            fitting |= gpu_bit(g);
    return fitting;
}

/// Assigns GPUs and other devices to a task that runs on unknown ones of the node; nothing if too few are
/// left.
inline std::optional<GpuMask> assigned_gpus(const Cluster& cluster, const Demand& task, NodeId node) {
    const auto& inv = cluster.inventory();
    GpuMask held = 0;
    for (const auto other : cluster.tasks_on(node)) held |= cluster.gpus_of(other);
    const auto spare = inv.nodes.failed_gpus[index(node)] & ~held;
    const auto take = [&](GpuMask healthy, GpuMask failed, int count) -> std::optional<GpuMask> {
        const int sound = std::min(gpu_count(healthy), count);
        if (gpu_count(failed) < count - sound) return std::nullopt;
        return lowest_gpus(healthy, sound) | lowest_gpus(failed, count - sound);
    };
    const auto whole =
        take(fitting_gpus(cluster, task, node), spare & first_gpus(cluster.gpu_count(node)), task.gpu_count);
    if (!whole || task.extras.device_count == 0) return whole;
    for (const auto device_class : task.extras.device_classes) {
        const auto devices = devices_of_class(inv, node, device_class);
        if (const auto found =
                take(devices & cluster.free_devices(node), devices & spare, task.extras.device_count))
            return *whole | *found;
    }
    return std::nullopt;
}

/// The GPUs and other devices of a task that runs on the node, listed or assigned; nothing after a problem.
inline std::optional<GpuMask> held_gpus(const Cluster& cluster, const Demand& demand, const TaskSpec& task,
                                        NodeId node, Problems& problems) {
    if (!task.assign_gpus) return listed_gpus(cluster, demand, task, node, problems);
    const Owner owner("task", task.name);
    if (!task.gpus.empty()) problems.add(owner + ": lists GPUs, and is to be assigned some");
    const auto assigned = assigned_gpus(cluster, demand, node);
    if (!assigned)
        problems.add(owner + ": node " + gpusched::quoted(cluster.name(node)) +
                     " has not enough GPUs and other devices left to assign it some");
    return assigned;
}

/// The tasks that hold a GPU or device of the node, for messages.
inline std::string holders_of(const Cluster& cluster, NodeId node, int gpu) {
    std::string holders;
    for (const auto task : cluster.tasks_on(node))
        if ((cluster.gpus_of(task) & gpu_bit(gpu)) != 0)
            holders += (holders.empty() ? "" : ", ") + gpusched::quoted(cluster.name(task));
    return holders;
}

/// Reports devices that several tasks hold.
inline void check_devices_held_once(const Cluster& cluster, NodeId node, Problems& problems) {
    GpuMask held = 0, twice = 0;
    for (const auto task : cluster.tasks_on(node)) {
        const auto devices = cluster.gpus_of(task) & cluster.devices(node);
        twice |= held & devices;
        held |= devices;
    }
    for_each_gpu(twice, [&](int device) {
        problems.add(concat("node ", gpusched::quoted(cluster.name(node)), ": device ", device,
                            " is held by several tasks: ", holders_of(cluster, node, device)));
    });
}

}  // namespace gpusched::detail
