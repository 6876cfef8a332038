// SPDX-License-Identifier: Apache-2.0
// PriceTable: the cost of displacing each task, by each allowed means.
#pragma once

#include "preemption/gang_table.hpp"

#include <gpusched/admission/options.hpp>
#include <gpusched/consolidation/scope.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpusched::admission::detail {

/// The cost of something impossible: more than any sum of costs. Sums of a few of them do not overflow.
inline constexpr std::int64_t never = INT64_MAX / 8;

/// The highest cost of one task, 7.0 * 10^10 GPU-seconds, so that sums over thousands of tasks do not
/// overflow.
inline constexpr std::int64_t most_per_task = INT64_MAX / (std::int64_t{1} << 17);

/// Product and sum that saturate at `most_per_task`.
inline std::int64_t product(std::int64_t a, std::int64_t b) noexcept {
    if (a == 0 || b == 0) return 0;
    return a > most_per_task / b ? most_per_task : a * b;
}
inline std::int64_t sum(std::int64_t a, std::int64_t b) noexcept { return std::min(a + b, most_per_task); }

/// The size of a task for its costs, in thousandths of a GPU.
[[nodiscard]] std::int64_t size_milli(const Cluster& cluster, TaskId task) noexcept;

/// Returns the rule for Slurm that keeps running tasks in place, which could otherwise move or be evicted for these
/// pods; empty if it keeps none.
[[nodiscard]] std::string rule_of_slurm(const Cluster& cluster, std::span<const TaskId> pods);

/// The prices of displacing tasks, by TaskId, in thousandths of a GPU-second; `never` = not by this means.
/// Evicting a gang costs the prices of its other members in addition, and exceeded budgets have their own
/// price.
struct PriceTable {
    struct OfTask {
        std::int64_t move = never;     ///< a move to another node
        std::int64_t replace = never;  ///< an eviction, then a placement
        std::int64_t lose = never;     ///< an eviction without a placement
        std::int64_t least = never;    ///< the least of the three
    };
    PriceTable(const Cluster& cluster, std::span<const TaskId> pods, const Options& options,
               const consolidation::Scope& scope, const preemption::detail::GangTable& gangs);

    std::vector<OfTask> of{};
    std::vector<std::uint8_t> unbroken{};  ///< by JobId: gangs that must not be broken
    const OfTask& operator[](TaskId task) const noexcept { return of[index(task)]; }

    /// The amount that a placement borrows, in thousandths of a GPU. Call it before the task is placed.
    [[nodiscard]] static std::int64_t borrowed_milli(const Cluster& cluster, TaskId task, NodeId node,
                                                     GpuMask gpus) noexcept;
};

}  // namespace gpusched::admission::detail
