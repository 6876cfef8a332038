// SPDX-License-Identifier: Apache-2.0
// Request: the requirements of a preemptor, resolved once per decision.
#pragma once

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/preemption/options.hpp>
#include <gpusched/topology/hardware_graph.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace gpusched::preemption::detail {

/// The number of set bits among the lower 16. Without a processor flag, std::popcount is a function call.
[[nodiscard]] constexpr int bits_of(std::uint32_t sixteen) noexcept {
    sixteen -= sixteen >> 1 & 0x5555u;
    sixteen = (sixteen & 0x3333u) + (sixteen >> 2 & 0x3333u);
    sixteen = (sixteen + (sixteen >> 4)) & 0x0F0Fu;
    return static_cast<int>((sixteen + (sixteen >> 8)) & 0x1Fu);
}

/// The value of a locality if no set of GPUs is feasible.
inline constexpr std::uint8_t infeasible = 3;

/// The requirements of one preemptor, and the rules for its victims.
struct Request {
    Request() = default;
    /// @param alike a request for as many GPUs with the same affinities, to share its table; may be nullptr
    /// @throws InvalidInput for a task that is unknown or runs
    Request(const Cluster& cluster, TaskId task, const Options& options, const Request* alike = nullptr);

    TaskId task = none<TaskId>;
    int gpus = 0;
    int share_milli = 0;  ///< share of a fraction of one GPU; 1000 otherwise
    bool fraction = false;
    bool borrows = false;    ///< may use resources that Standby tasks lend
    bool cpu_local = false;  ///< requires cores near its GPUs
    bool grouped = false;    ///< has group constraints
    bool has_near = false;   ///< has a `near` constraint, which an eviction can break
    bool spot = false;       ///< the policy evicts spot tasks
    bool paper = false;      ///< scores by the plain sum of priorities
    bool break_budgets = false;
    JobId job = none<JobId>;  ///< its own job: the running part of this gang is never broken
    std::int64_t cpu_milli = 0, memory_mib = 0, gpu_memory_mib = 0;
    std::int64_t priority = 0;
    std::uint32_t requirement = 0;
    std::uint32_t extras = 0;  ///< index into Inventory::extras; 0 = none
    Qos qos = Qos::none;
    std::optional<HardwareLevel> level{};  ///< guaranteed
    std::int64_t now = 0;
    double alpha = 0.5;
    std::array<double, 3> topology{1, 0.5, 0};  ///< by topology::GpuLocality; zeros for Qos::none
    std::int64_t search_limit = 0;
    /// Ranks of tasks by name, by TaskId; UINT32_MAX = unknown; nullptr = compare names.
    const std::uint32_t* name_rank = nullptr;
    const std::uint8_t* spared = nullptr;    ///< tasks that are never evicted, by TaskId; nullptr = none
    const std::uint8_t* unbroken = nullptr;  ///< other gangs that are never broken, by JobId; nullptr = none
    const std::int64_t* down = nullptr;      ///< tasks that were evicted before, by budget; nullptr = none

    /// Returns whether GPU model, labels, taints and the set of nodes allow the node.
    [[nodiscard]] bool may_run_on(const Inventory& inventory, NodeId node) const {
        return inventory.eligible(requirement, inventory.nodes.node_class[index(node)]) &&
               (extras == 0 || inventory.in_node_set(extras, node));
    }
    /// Returns whether the guaranteed level allows this locality.
    [[nodiscard]] bool admits(std::uint8_t locality) const noexcept {
        return !level || locality == 0 || (locality == 1 && *level == HardwareLevel::socket);
    }
    /// @param priority_sum, weights of the victims' priorities
    [[nodiscard]] double score_of(std::int64_t priority_sum, const PriorityWeight& weights,
                                  std::uint8_t locality) const noexcept {
        return paper ? paper_score(priority_sum, topology[locality], alpha)
                     : score(weights.value(), topology[locality], alpha);
    }
    /// Returns whether the gang belongs to the preemptor or to a pod placed with it. Such gangs lose only
    /// their surplus.
    [[nodiscard]] bool never_breaks(JobId gang) const noexcept {
        return gang == job || (unbroken != nullptr && unbroken[index(gang)] != 0);
    }
    /// The number of further tasks that the budget allows to evict.
    [[nodiscard]] std::int64_t allowed_down(const Inventory& inventory, std::uint32_t budget) const {
        const auto allowed = inventory.budgets[budget].allows() - (down == nullptr ? 0 : down[budget]);
        return std::max<std::int64_t>(0, allowed);
    }
    /// The best locality of `gpus` GPUs among `free`, or `infeasible`. Ignores cores.
    [[nodiscard]] std::uint8_t locality(const HardwareMasks* hardware, GpuMask free) const noexcept;

    /// A table of `locality` for nodes with at most 8 GPUs, indexed by Inventory::hardware; nullptr = none.
    std::shared_ptr<const std::vector<std::array<std::uint8_t, 256>>> table{};
};

/// Returns whether `task` is bound by a constraint of this kind (`near`, `spread`) that selects `other`.
[[nodiscard]] bool shares_selection(const Cluster& cluster, TaskId task, TaskId other,
                                    GroupKind kind) noexcept;

/// Returns whether the caller, a `near` constraint of the preemptor, or an exhausted disruption budget
/// protects the task.
[[nodiscard]] bool is_kept(const Cluster& cluster, const Request& request, TaskId task) noexcept;

/// Returns whether the request may evict the task, on any node. Called for every task on every node.
[[nodiscard]] inline bool is_potential_victim(const Cluster& cluster, const Request& request,
                                              TaskId task) noexcept {
    const auto& t = cluster.inventory().tasks;
    if (!t.is(TaskTrait::evictable, task)) return false;
    if (!(request.spot ? t.is(TaskTrait::borrows, task) : t.priority[index(task)] < request.priority))
        return false;
    const bool may_be_kept = request.spared != nullptr || request.has_near || !t.budgets.empty();
    return !may_be_kept || !is_kept(cluster, request, task);
}

/// The cost of evicting a task, by the caller's function or else `lost_work`.
/// @throws InvalidInput if the function returns less than 0 or more than `largest_cost`
[[nodiscard]] std::int64_t cost_of(const Cluster& cluster, TaskId task, std::int64_t now,
                                   const CostFunction& cost);

}  // namespace gpusched::preemption::detail
