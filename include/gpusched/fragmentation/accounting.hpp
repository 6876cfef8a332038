// SPDX-License-Identifier: Apache-2.0
// Accounting: the tasks that hold capacity when idle GPUs are counted; all tasks, or only HP tasks as in the
// ASI paper.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <cstdint>

namespace gpusched::fragmentation {

/// The tasks that hold capacity.
enum class Accounting : std::uint8_t {
    all,  ///< all tasks; Standby tasks hold the GPUs that they lend, so idle means idle without spot rights
    hp,  ///< HP tasks, as in Figs. 9, 13, 14 and 16 of the ASI paper; LP tasks hold only GPUs lent by Standby
};
constexpr auto enum_names(Accounting) {
    return name_table<Accounting>({
        {Accounting::all, "all"},
        {Accounting::hp, "hp"},
    });
}

/// A node's capacity and the requests of its tasks by class, in thousandths of a GPU and of a core.
///
/// Uses the definitions of the public ASI trace (alibaba/clusterdata, cluster-trace-gpu-v2026:
/// build_aggregates.py, schema.md). One snapshot replaces the GPU-hours of an hour. With G = `gpus`, C =
/// `cpu`, A = `hp_active`, S = `hp_standby` and L = `lp`:
///   r = `unborrowed` = max(S - L, 0)
///   idle GPUs  = max(G - (A + r), 0)
///   idle cores = max(C - cores requested by HP tasks, 0)
/// Failed GPUs, which the trace does not have, belong to G. Tasks that are neither HP nor LP hold nothing,
/// like pods of class Other in the trace.
struct NodeRequests {
    std::int64_t gpus = 0, cpu = 0;  ///< capacity
    std::int64_t hp_active = 0;      ///< GPUs of HP tasks that are not Standby
    std::int64_t hp_standby = 0;     ///< GPUs of HP tasks that are Standby
    std::int64_t lp = 0;             ///< GPUs of LP tasks
    std::int64_t hp_cpu = 0;         ///< cores of all HP tasks
    bool has_hp = false;             ///< an HP task runs here, with or without GPUs

    [[nodiscard]] std::int64_t unborrowed() const noexcept {
        return std::max<std::int64_t>(hp_standby - lp, 0);
    }
    [[nodiscard]] std::int64_t idle_gpus() const noexcept {
        return std::max<std::int64_t>(gpus - (hp_active + unborrowed()), 0);
    }
    [[nodiscard]] std::int64_t idle_cpu() const noexcept { return std::max<std::int64_t>(cpu - hp_cpu, 0); }
    /// Returns the GPUs that HP and LP tasks hold together: min(A + L, G) + r.
    [[nodiscard]] std::int64_t held() const noexcept { return std::min(hp_active + lp, gpus) + unborrowed(); }
};

/// Returns the requests on a node. O(tasks on the node).
[[nodiscard]] inline NodeRequests requests_on(const Cluster& cluster, NodeId node) noexcept {
    const auto& tasks = cluster.inventory().tasks;
    NodeRequests out;
    out.gpus = std::int64_t{whole_gpu_milli} * cluster.gpu_count(node);
    out.cpu = cluster.inventory().nodes.cpu_milli[index(node)];
    for (const auto task : cluster.tasks_on(node)) {
        const auto i = index(task);
        if (tasks.priority_class[i] == PriorityClass::lp) out.lp += cluster.gpu_milli(task);
        if (tasks.priority_class[i] != PriorityClass::hp) continue;
        out.has_hp = true;
        out.hp_cpu += tasks.cpu_milli[i];
        (tasks.standby[i] ? out.hp_standby : out.hp_active) += cluster.gpu_milli(task);
    }
    return out;
}

namespace detail {
/// A node's idle GPUs and cores, in thousandths.
struct Idle {
    std::int64_t gpu_milli = 0, cpu_milli = 0;
};
[[nodiscard]] inline Idle idle_on(const Cluster& cluster, NodeId node, Accounting accounting) noexcept {
    if (accounting == Accounting::all)
        return {cluster.gpu_free_total_milli(node), cluster.cpu_free_milli(node)};
    const auto requests = requests_on(cluster, node);
    return {requests.idle_gpus(), requests.idle_cpu()};
}
}  // namespace detail

}  // namespace gpusched::fragmentation
