// SPDX-License-Identifier: Apache-2.0
// Computes how many copies of a pod fit on a node.
#pragma once

#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <cstdint>

namespace gpusched::detail {

/// The number of pods with these extras for which the node has named resources, at most `most`.
inline std::int64_t resource_room(const Cluster& cluster, const Extras& extras, NodeId node,
                                  std::int64_t most) {
    for (const auto& [resource, amount] : extras.resources)
        most = std::min(most, std::max<std::int64_t>(0, cluster.resource_free(node, resource)) / amount);
    return most;
}

/// The number of pods for which the node has devices besides whole GPUs, at most `most`.
inline std::int64_t device_room(const Cluster& cluster, const Extras& extras, NodeId node,
                                std::int64_t most) {
    if (extras.device_count == 0) return most;
    std::int64_t pods = 0;
    for (const auto device_class : extras.device_classes)
        pods += gpu_count(cluster.free_devices(node) &
                          devices_of_class(cluster.inventory(), node, device_class)) /
                extras.device_count;
    return std::min(most, pods);
}

/// The number of pods like `task`, which has GPUs, for which the node has GPUs. Inlined, because `pod_room` is
/// called for every node.
[[gnu::always_inline]] inline std::int64_t gpu_room(const Cluster& cluster, TaskId task, NodeId node) {
    const auto& t = cluster.inventory().tasks;
    const auto i = index(task);
    const auto candidates = candidate_gpus(cluster, task, node);
    std::int64_t pods = 0;
    if (!cluster.is_fraction(task)) {
        const auto local = guaranteed_localities(cluster, task, node);
        if (local.masks.empty()) return local.unknown ? 0 : gpu_count(candidates) / t.gpu_count[i];
        for (const auto mask : local.masks)
            pods += gpu_count(static_cast<GpuMask>(mask & candidates)) / t.gpu_count[i];
        return pods;
    }
    const auto memory = cluster.inventory().nodes.gpu_memory_mib[index(node)] < 0 ? 0 : t.gpu_memory_mib[i];
    for_each_gpu(candidates, [&](int g) {
        std::int64_t here = cluster.gpu_free_milli(node, g, cluster.lent_to(task)) / t.gpu_share_milli[i];
        if (memory > 0) here = std::min(here, cluster.gpu_memory_free_mib(node, g) / memory);
        pods += here;
    });
    return pods;
}

/// The number of pods like `task` for which the node has room, at most `most`, even if it does not take them.
inline std::int64_t room_by_resources(const Cluster& cluster, TaskId task, NodeId node, std::int64_t most) {
    const auto& inv = cluster.inventory();
    const auto& t = inv.tasks;
    const auto i = index(task);
    const auto at_most = [&](std::int64_t free, std::int64_t each) {
        if (each > 0) most = std::min(most, std::max<std::int64_t>(0, free) / each);
    };
    if (t.gpu_count[i] > 0) most = std::min(most, gpu_room(cluster, task, node));
    if (most == 0) return 0;
    at_most(cluster.cpu_free_milli(node, cluster.lent_to(task)), t.cpu_milli[i]);
    at_most(cluster.memory_free_mib(node), t.memory_mib[i]);
    if (t.extras[i] != 0) {
        const auto& extras = inv.extras[t.extras[i]];
        most = device_room(cluster, extras, node, resource_room(cluster, extras, node, most));
    }
    return std::max<std::int64_t>(most, 0);
}

/// The number of pods like `task` that fit on the node together, at most `most`. Ignores group constraints.
inline std::int64_t pod_room(const Cluster& cluster, TaskId task, NodeId node, std::int64_t most) {
    const auto& inv = cluster.inventory();
    if (!inv.nodes.receives(node) || !inv.eligible(task, node)) return 0;
    return room_by_resources(cluster, task, node, most);
}

/// True if the pod has group constraints other than the network level of its own gang. `pod_room` ignores
/// them, so copies must be placed one by one.
inline bool needs_trial(const Cluster& cluster, TaskId task) {
    const auto& inv = cluster.inventory();
    const auto groups = inv.affinity_memberships(task);
    return !inv.anti_affinity_memberships(task).empty() || !inv.selection_memberships(task).empty() ||
           std::any_of(groups.begin(), groups.end(), [&](const Membership& m) {
               return inv.group_sets[m.set].kind != GroupKind::network || cluster.group_domains(m.set) > 0;
           });
}

}  // namespace gpusched::detail
