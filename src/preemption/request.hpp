// SPDX-License-Identifier: Apache-2.0
// Request: what a preemptor asks of a node, resolved once per decision.
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

/// How many members a set of at most 16 has. Not std::popcount, which without a processor flag is a call.
[[nodiscard]] constexpr int bits_of(std::uint32_t sixteen) noexcept {
    sixteen -= sixteen >> 1 & 0x5555u;
    sixteen = (sixteen & 0x3333u) + (sixteen >> 2 & 0x3333u);
    sixteen = (sixteen + (sixteen >> 4)) & 0x0F0Fu;
    return static_cast<int>((sixteen + (sixteen >> 8)) & 0x1Fu);
}

/// A locality, or "no set of GPUs will do".
inline constexpr std::uint8_t infeasible = 3;

struct Request {
    Request() = default;
    /// @throws InvalidInput when the task is not one of the cluster or runs already
    /// @param alike one of a task that asks for as many GPUs with the same wishes: its table serves both
    Request(const Cluster& cluster, TaskId task, const Options& options, const Request* alike = nullptr);

    TaskId task = none<TaskId>;
    int gpus = 0;
    int share_milli = 0;  ///< of the one GPU of a fraction; 1000 otherwise
    bool fraction = false;
    bool borrows = false;     ///< may use what Standby tasks lend
    bool cpu_local = false;   ///< with GPUs
    bool grouped = false;     ///< has group constraints
    bool wants_near = false;  ///< and one of them may fail because of who leaves
    bool spot = false;        ///< the policy evicts spot tasks
    bool paper = false;       ///< scores by the plain sum of priorities
    bool break_budgets = false;
    JobId job = none<JobId>;  ///< whose gang is never broken: its own, where it runs in part
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
    const std::uint32_t* name_rank =
        nullptr;  ///< order of tasks by name, where it is known; by TaskId, UINT32_MAX = not of this one
    const std::uint8_t* spared = nullptr;  ///< who stays whatever it is, by TaskId; nothing = nobody
    const std::uint8_t* unbroken =
        nullptr;                         ///< further gangs that are never broken, by JobId; nothing = none
    const std::int64_t* down = nullptr;  ///< tasks that others evict, by budget; nothing = none

    /// GPU model, labels, taints, single nodes.
    [[nodiscard]] bool may_run_on(const Inventory& inventory, NodeId node) const {
        return inventory.eligible(requirement, inventory.nodes.node_class[index(node)]) &&
               (extras == 0 || inventory.in_node_set(extras, node));
    }
    [[nodiscard]] bool admits(std::uint8_t locality) const noexcept {
        return !level || locality == 0 || (locality == 1 && *level == HardwareLevel::socket);
    }
    /// @param priority_sum, weights of the victims' priorities
    [[nodiscard]] double score_of(std::int64_t priority_sum, const PriorityWeight& weights,
                                  std::uint8_t locality) const noexcept {
        return paper ? paper_score(priority_sum, topology[locality], alpha)
                     : score(weights.value(), topology[locality], alpha);
    }
    /// Is the job's gang the preemptor's own, or that of a pod placed with it? Of these only the surplus leaves.
    [[nodiscard]] bool never_breaks(JobId gang) const noexcept {
        return gang == job || (unbroken != nullptr && unbroken[index(gang)] != 0);
    }
    /// How many more tasks of the budget may be down.
    [[nodiscard]] std::int64_t allowed_down(const Inventory& inventory, std::uint32_t budget) const {
        const auto allowed = inventory.budgets[budget].allows() - (down == nullptr ? 0 : down[budget]);
        return std::max<std::int64_t>(0, allowed);
    }
    /// The best locality of a set of `gpus` GPUs among `free`, or `infeasible`; constraints of cores apart.
    [[nodiscard]] std::uint8_t locality(const HardwareMasks* hardware, GpuMask free) const noexcept;

    /// `locality` by table, for machines of at most 8 GPUs; indexed by Inventory::hardware. nullptr = not there.
    std::shared_ptr<const std::vector<std::array<std::uint8_t, 256>>> table{};
};

/// Does something else than its class or its priority keep the task: the caller, a wish of the preemptor to be near it, or a
/// disruption budget that allows nobody to be down?
[[nodiscard]] bool is_kept(const Cluster& cluster, const Request& request, TaskId task) noexcept;

/// Is the task one that the request may evict, wherever it runs? Asked of every task on every node.
[[nodiscard]] inline bool is_potential_victim(const Cluster& cluster, const Request& request,
                                              TaskId task) noexcept {
    const auto& t = cluster.inventory().tasks;
    if (!t.is(TaskTrait::evictable, task)) return false;
    if (!(request.spot ? t.is(TaskTrait::borrows, task) : t.priority[index(task)] < request.priority))
        return false;
    const bool may_be_kept = request.spared != nullptr || request.wants_near || !t.budgets.empty();
    return !may_be_kept || !is_kept(cluster, request, task);
}

/// @throws InvalidInput when the caller's function answers less than 0 or more than `largest_cost`
[[nodiscard]] std::int64_t cost_of(const Cluster& cluster, TaskId task, std::int64_t now,
                                   const CostFunction& cost);

}  // namespace gpusched::preemption::detail
