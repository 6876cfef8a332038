// SPDX-License-Identifier: Apache-2.0
// Prices: what it costs to displace each task, by each means that is open to it.
#pragma once

#include "preemption/gang_table.hpp"

#include <gpusched/admission/options.hpp>
#include <gpusched/consolidation/scope.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace gpusched::admission::detail {

/// More than any sum of costs; sums of a few of them do not overflow.
inline constexpr std::int64_t never = INT64_MAX / 8;

/// Costs of one task stop here, at 7.0 * 10^10 GPU-seconds, so that sums over thousands do not overflow.
inline constexpr std::int64_t most_per_task = INT64_MAX / (std::int64_t{1} << 17);

inline std::int64_t product(std::int64_t a, std::int64_t b) noexcept {
    if (a == 0 || b == 0) return 0;
    return a > most_per_task / b ? most_per_task : a * b;
}
inline std::int64_t sum(std::int64_t a, std::int64_t b) noexcept { return std::min(a + b, most_per_task); }

/// Thousandths of a GPU that the task counts as.
[[nodiscard]] std::int64_t size_milli(const Cluster& cluster, TaskId task) noexcept;

/// By TaskId, in thousandths of a GPU-second; `never` = not by this means. Evictions of gangs cost those of the other members
/// on top, and broken budgets what they cost.
struct Prices {
    struct OfTask {
        std::int64_t move = never;     ///< to another node
        std::int64_t replace = never;  ///< eviction and a new place
        std::int64_t lose = never;     ///< eviction alone
        std::int64_t least = never;    ///< of the three
    };
    Prices(const Cluster& cluster, std::span<const TaskId> pods, const Options& options,
           const consolidation::Scope& scope, const preemption::detail::GangTable& gangs);

    std::vector<OfTask> of{};
    std::vector<std::uint8_t> unbroken{};  ///< by JobId: gangs that are not broken
    const OfTask& operator[](TaskId task) const noexcept { return of[index(task)]; }

    /// What one placement borrows, in thousandths of a GPU. To be asked before the task is placed there.
    [[nodiscard]] static std::int64_t borrowed_milli(const Cluster& cluster, TaskId task, NodeId node,
                                                     GpuMask gpus) noexcept;
};

}  // namespace gpusched::admission::detail
