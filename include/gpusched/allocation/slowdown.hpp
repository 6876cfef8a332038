// SPDX-License-Identifier: Apache-2.0
// Interference between tasks: the resources that neighbours hold, and how much longer work takes next to
// them.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gpusched::allocation {

/// Largest slowdown of a curve: work takes five times as long.
inline constexpr std::int64_t most_slowdown_milli = 4000;
/// Maximum number of values of a curve.
inline constexpr std::size_t most_slowdown_values = 16;

/// A task's slowdown by the part of a resource that neighbours of one kind hold: linear between equally
/// spaced values.
///
/// Example: with 111 thousandths, work of 1,000 s takes 1,111 s.
struct SlowdownCurve {
    /// Slowdown in thousandths at 1/n, 2/n, .., n/n of the resource, of n values; 0 if neighbours hold
    /// nothing. Non-decreasing, 0 to 4000, at most 16 values; empty = no slowdown.
    std::vector<std::int64_t> milli{};

    /// Returns the slowdown in thousandths, rounded down, if neighbours hold `held` of `all`; both at most
    /// `largest_quantity`.
    [[nodiscard]] std::int64_t operator()(std::int64_t held, std::int64_t all) const noexcept {
        if (milli.empty() || held <= 0 || all <= 0) return 0;
        if (held >= all) return milli.back();
        const auto scaled = held * static_cast<std::int64_t>(milli.size());
        const auto piece = static_cast<std::size_t>(scaled / all);
        const auto low = piece == 0 ? 0 : milli[piece - 1];
        return low + (milli[piece] - low) * (scaled % all) / all;
    }
    bool operator==(const SlowdownCurve&) const = default;
};

/// The slowdown of GPU tasks next to CPU-only tasks, after the two figures of ASI, section 5.2: the SM
/// utilisation of training falls by 10 % (median) and 18 % (90th percentile) on nodes on which CPU jobs use
/// more cores than GPU jobs.
///
/// Work then takes 1 / 0.90 and 1 / 0.82 of its time. The paper does not state which part of the cores CPU
/// jobs used. The curve assumes half of the cores for the first figure and all of them for the second, which
/// makes a line.
[[nodiscard]] inline SlowdownCurve published_slowdown() { return {{111, 220}}; }

/// Adds every problem of the values of a curve, named after `field`.
void check_slowdown(Problems& problems, std::string_view field, const std::vector<std::int64_t>& milli);

/// An observation of one task: neighbours held a part of the resource (0 to 1), and its work took (1 +
/// `slowdown`) times as long as alone. Measured values may be negative, above -1.
struct SlowdownObservation {
    double held = 0;
    double slowdown = 0;
};

/// Learns a curve from observations: the least squares among curves of `values` equally spaced values that
/// start at 0, do not fall, and stay within `most_slowdown_milli`.
///
/// Exact: tries every choice of the pieces that rise. Keeps the best one with a fit, unconstrained or up to
/// `most_slowdown_milli`, that rises in all of them. The curve is flat in ranges without observations. Values
/// are rounded to thousandths.
///
/// @param values 1 to 8
/// @throws InvalidInput for values out of range, numbers that are not finite, and a list without an
///     observation
/// O(observations x values^2 + 2^values x values^3). Sums are in floating point. After rounding, the curve
/// does not depend on the machine, except if a value lies on the border of two thousandths.
[[nodiscard]] SlowdownCurve fit_slowdown(std::span<const SlowdownObservation> observations, int values = 1);

/// True for a task that asks for no GPU and no other device.
[[nodiscard]] inline bool is_cpu_only(const Cluster& cluster, TaskId task) noexcept {
    const auto& inventory = cluster.inventory();
    return inventory.tasks.gpu_count[index(task)] == 0 &&
           inventory.extras[inventory.tasks.extras[index(task)]].device_count == 0;
}

/// False for daemons and for Standby tasks, which lend their resources: they disturb no task and are not
/// disturbed.
[[nodiscard]] inline bool interferes(const Cluster& cluster, TaskId task) noexcept {
    const auto& t = cluster.inventory().tasks;
    return !t.daemon[index(task)] && !t.standby[index(task)];
}

/// Thousandths of a core that interfering CPU-only tasks hold on the node. O(tasks on the node).
[[nodiscard]] inline std::int64_t cpu_only_milli(const Cluster& cluster, NodeId node) noexcept {
    const auto& t = cluster.inventory().tasks;
    std::int64_t held = 0;
    for (const auto task : cluster.tasks_on(node))
        if (is_cpu_only(cluster, task) && interferes(cluster, task)) held += t.cpu_milli[index(task)];
    return held;
}

/// Thousandths of GPUs that interfering tasks hold on the node. O(tasks on the node).
[[nodiscard]] inline std::int64_t working_gpu_milli(const Cluster& cluster, NodeId node) noexcept {
    std::int64_t sum = 0;
    for (const auto task : cluster.tasks_on(node))
        if (interferes(cluster, task)) sum += cluster.gpu_milli(task);
    return sum;
}

/// The fractions on one GPU, in thousandths of it.
struct GpuSharing {
    std::int64_t online_milli = 0;   ///< of fractions that are not LP
    std::int64_t offline_milli = 0;  ///< of LP fractions
};

/// The interfering fractions on one GPU of a node. O(tasks on the node).
[[nodiscard]] inline GpuSharing sharing(const Cluster& cluster, NodeId node, int gpu) noexcept {
    GpuSharing sum;
    for (const auto task : cluster.tasks_on(node))
        if (cluster.is_fraction(task) && interferes(cluster, task) &&
            (cluster.gpus_of(task) & gpu_bit(gpu)) != 0)
            (cluster.may_borrow(task) ? sum.offline_milli : sum.online_milli) += cluster.gpu_milli(task);
    return sum;
}

namespace detail {

/// Returns those of the fraction's possible GPUs on which, with it, LP fractions hold at most the limit, or
/// share with no others.
[[nodiscard]] inline GpuMask within_offline_limit(const Cluster& cluster, TaskId task, NodeId node,
                                                  std::int64_t limit_milli) noexcept {
    GpuMask within = 0;
    for_each_gpu(candidate_gpus(cluster, task, node), [&](int g) {
        auto shared = interferes(cluster, task) ? sharing(cluster, node, g) : GpuSharing{};
        (cluster.may_borrow(task) ? shared.offline_milli : shared.online_milli) += cluster.gpu_milli(task);
        if (shared.online_milli == 0 || shared.offline_milli == 0 || shared.offline_milli <= limit_milli)
            within |= gpu_bit(g);
    });
    return within;
}

}  // namespace detail

}  // namespace gpusched::allocation
