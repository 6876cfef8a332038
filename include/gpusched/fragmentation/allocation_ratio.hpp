// SPDX-License-Identifier: Apache-2.0
// Allocation ratios: the share of all GPUs that is allocated, and the requests of HP and LP tasks behind the
// figures of the ASI paper.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/fragmentation/incremental.hpp>
#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::fragmentation {

/// The tasks that hold capacity.
enum class Accounting : std::uint8_t {
    all,  ///< all tasks; Standby tasks hold the GPUs that they lend, so idle means idle without spot rights
    hp,  ///< HP tasks, as in Figs. 9, 13, 14 and 16 of the ASI paper; LP tasks hold only GPUs lent by Standby
};

/// A node's capacity and the requests of its tasks by class, in thousandths of a GPU and of a core.
///
/// Uses the definitions of the public ASI trace (alibaba/clusterdata, cluster-trace-gpu-v2026: schema.md); one
/// snapshot replaces an hour. With G = `gpus`, C = `cpu`, A = `hp_active`, S = `hp_standby` and L = `lp`:
///   r = `unborrowed` = max(S - L, 0)
///   idle GPUs  = max(G - (A + r), 0)
///   idle cores = max(C - cores requested by HP tasks, 0)
/// Failed GPUs belong to G. Tasks that are neither HP nor LP hold nothing.
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

/// GPUs allocated to tasks, in thousandths.
struct AllocationRatio {
    std::int64_t capacity_milli = 0;  ///< all GPUs of all nodes, including cordoned nodes and failed GPUs
    std::int64_t hp_milli = 0;        ///< HP tasks, including Standby tasks that lend their GPUs
    std::int64_t lp_milli = 0;        ///< LP (spot) tasks
    std::int64_t other_milli = 0;     ///< tasks of neither class
    std::int64_t held_milli = 0;      ///< all tasks; a lent GPU that an LP task uses counts once
    bool operator==(const AllocationRatio&) const = default;

    /// Returns the share of all GPUs that HP tasks hold, 0 to 1; 0 if the fleet has no GPUs.
    [[nodiscard]] double hp() const noexcept { return share(hp_milli); }
    /// Returns the share of all GPUs that any task (HP, LP or other) holds, 0 to 1.
    [[nodiscard]] double total() const noexcept { return share(held_milli); }

  private:
    [[nodiscard]] double share(std::int64_t milli) const noexcept {
        return capacity_milli == 0 ? 0.0 : static_cast<double>(milli) / static_cast<double>(capacity_milli);
    }
};
template <class F>
constexpr void visit_fields(std::type_identity<AllocationRatio>, F&& field) {
    field("capacity_milli", &AllocationRatio::capacity_milli);
    field("hp_milli", &AllocationRatio::hp_milli);
    field("lp_milli", &AllocationRatio::lp_milli);
    field("other_milli", &AllocationRatio::other_milli);
    field("held_milli", &AllocationRatio::held_milli);
}

/// The allocation ratio as a node metric for `Incremental`. O(tasks on the node) per change.
struct AllocationRatioMetric : SumOfFields<AllocationRatio> {
    [[nodiscard]] static AllocationRatio state(const Cluster& cluster, NodeId node) noexcept {
        const auto& tasks = cluster.inventory().tasks;
        AllocationRatio out;
        out.capacity_milli = std::int64_t{whole_gpu_milli} * cluster.gpu_count(node);
        // An LP task may run on capacity that a Standby task claims but does not use.
        std::array<std::int64_t, max_gpus_per_node> claimed{}, used{};
        for (const auto task : cluster.tasks_on(node)) {
            const auto i = index(task);
            const auto of = tasks.priority_class[i];
            (of == PriorityClass::hp   ? out.hp_milli
             : of == PriorityClass::lp ? out.lp_milli
                                       : out.other_milli) += cluster.gpu_milli(task);
            for_each_gpu(cluster.gpus_of(task), [&](int g) {
                const auto at = static_cast<std::size_t>(g);
                if (!cluster.may_borrow(task)) claimed[at] += tasks.gpu_share_milli[i];
                if (!tasks.standby[i]) used[at] += tasks.gpu_share_milli[i];
            });
        }
        for (std::size_t g = 0; g < static_cast<std::size_t>(cluster.gpu_count(node)); ++g)
            out.held_milli += std::max(claimed[g], used[g]);
        return out;
    }
};

/// Returns the GPU allocation ratio of the ASI paper (section 3.3): allocated GPUs over all GPUs, for HP
/// tasks and for all tasks.
///
/// Reservations of moving tasks do not count. O(nodes + tasks).
[[nodiscard]] inline AllocationRatio allocation_ratio(const Cluster& cluster) {
    return evaluate(AllocationRatioMetric{}, cluster);
}

/// The means for the servers of one GPU model.
struct ServerRatios {
    std::string gpu_model{};           ///< "*" = all models together; empty = servers without a model name
    std::int64_t servers = 0;          ///< nodes with GPUs
    double hp = 0;                     ///< Fig. 9, HP: mean over servers of (A + r) / G
    double hp_and_lp = 0;              ///< Fig. 9, HP+LP: mean over servers of (min(A + L, G) + r) / G
    std::int64_t standby_servers = 0;  ///< servers with Standby tasks that have GPUs
    double standby_used =
        0;  ///< Fig. 16: mean over `standby_servers` of L / S; above 1 if LP tasks hold more than is lent
    bool operator==(const ServerRatios&) const = default;
};

/// Returns the published allocation ratios and the use of Standby GPUs, with A, S, L, G and r as in
/// `NodeRequests`.
///
/// Every server has the same weight, regardless of its size; `allocation_ratio` weighs by GPUs, and counts a GPU
/// once if it is lent and used. Means over no servers are 0. Cordoned nodes and failed GPUs count.
/// @return one row per GPU model in order of first appearance, then "*"
/// O(nodes + tasks). Deterministic.
[[nodiscard]] std::vector<ServerRatios> server_ratios(const Cluster& cluster);

}  // namespace gpusched::fragmentation
