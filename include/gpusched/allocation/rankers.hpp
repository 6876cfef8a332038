// SPDX-License-Identifier: Apache-2.0
// Node rankers: ASI's criteria, the wishes of tasks, the usual baselines, and rankers made of rankers.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/slowdown.hpp>
#include <gpusched/fragmentation/expected_fill.hpp>
#include <gpusched/fragmentation/fgd.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::allocation {

/// ASI's first criterion: prefers the node with the least idle GPU capacity, so that emptier nodes stay
/// whole.
///
/// Capacity is idle if the task itself could take it; for LP tasks this includes capacity that Standby tasks
/// lend. O(GPUs of the node).
struct Packing {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        return -cluster.gpu_free_total_milli(node, cluster.lent_to(task));
    }
};

/// ASI's second criterion: keeps HP and spot (LP) tasks on different nodes.
///
/// Spot tasks: 1 on nodes with only spot tasks, 0 on empty nodes, -1 on nodes with other tasks. All other
/// tasks: 1 on nodes with other tasks, 0 on empty nodes, -1 on nodes with only spot tasks. Daemons do not
/// count. O(tasks on the node).
struct Homogeneous {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        const auto& t = cluster.inventory().tasks;
        bool spot = false, others = false;
        for (const auto neighbour : cluster.tasks_on(node)) {
            if (t.daemon[index(neighbour)]) continue;
            (cluster.may_borrow(neighbour) ? spot : others) = true;
        }
        if (!spot && !others) return 0;
        return cluster.may_borrow(task) == others ? -1 : 1;
    }
};

/// ASI's third criterion: spot (LP) tasks go to the node with the fewest evictions, all others to the one
/// with the most, so that preemptions gather on nodes that are volatile anyway.
///
/// A node's history is its own `NodeSpec::eviction_count`, independent of the tasks that run there now:
/// evictions of those tasks on other nodes do not count. O(1).
struct EvictionHistory {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        const auto evictions = cluster.inventory().nodes.eviction_count[index(node)];
        return cluster.may_borrow(task) ? -evictions : evictions;
    }
};

/// Minus the GPU work that is lost to interference between CPU-only tasks and GPU tasks of the node, in
/// millionths of a GPU.
///
/// ASI (section 5.2) does not specify how CPU jobs are placed next to GPU jobs; this is a penalty for it. Let
/// s(x) be the slowdown when CPU-only tasks hold the part x of the node's cores.
///
/// - A GPU task scores minus its GPUs x s(x).
/// - A CPU-only task scores minus the GPUs that work on the node x (s(x with the task) - s(x)).
/// - The score is 0 on nodes without disturbance, and for daemons and Standby tasks.
///
/// O(tasks on the node).
struct Interference {
    static constexpr bool node_local = true;
    SlowdownCurve slowdown = published_slowdown();  ///< given, or learned by `fit_slowdown`
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        if (!interferes(cluster, task)) return 0;
        const auto cores = cluster.inventory().nodes.cpu_milli[index(node)];
        const auto held = cpu_only_milli(cluster, node);
        if (!is_cpu_only(cluster, task)) return -cluster.gpu_milli(task) * slowdown(held, cores);
        const auto more = held + cluster.inventory().tasks.cpu_milli[index(task)];
        return -working_gpu_milli(cluster, node) * (slowdown(more, cores) - slowdown(held, cores));
    }
};

/// Prefers nodes that meet the task's `network_affinity` best, also a required one. The score
/// is the number of other members of its job in the node's domain of that level. 0 everywhere for tasks
/// without a job or such an affinity.
///
/// A node of unknown position is a domain of its own. O(tasks) per placement, or for every node if it is
/// called node by node.
struct NetworkWish {
    /// Members by domain, for one task.
    struct Members {
        Level level = node_level;
        std::vector<std::int64_t> count{};  ///< by DomainId; empty = no wish
        std::int64_t operator()(const Cluster& cluster, TaskId, NodeId node) const {
            return count.empty() ? 0 : count[index(cluster.inventory().domain(level, node))];
        }
    };
    [[nodiscard]] Members for_task(const Cluster& cluster, TaskId task) const {
        const auto& inv = cluster.inventory();
        const auto& wish = inv.task_affinities[inv.tasks.affinities[index(task)]].network_affinity;
        const auto job = inv.tasks.job[index(task)];
        Members members;
        if (!wish || job == none<JobId>) return members;
        members.level = wish->level;
        members.count.resize(inv.domain_count(wish->level));
        for (const auto other : cluster.tasks())
            if (inv.tasks.job[index(other)] == job && other != task && cluster.is_placed(other))
                ++members.count[index(inv.domain(wish->level, cluster.node_of(other)))];
        return members;
    }
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const {
        return for_task(cluster, task)(cluster, task, node);
    }
};

/// Prefers nodes that meet the task's hardware wish (`hardware_affinity`, best effort or guaranteed) best.
///
/// NUMA wish: 2 if the GPUs that the task could take now include enough of one NUMA node, 1 if enough of one
/// socket. Socket wish: 1 if enough of one socket. The score is 0 on all other nodes, on nodes of unknown
/// hardware, and for tasks of less than two GPUs or without such a wish. The picker decides which GPUs it
/// gets: see ByWish. O(1).
struct HardwareWish {
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const {
        const auto& inv = cluster.inventory();
        const int wanted = inv.tasks.gpu_count[index(task)];
        const auto& wishes = inv.task_affinities[inv.tasks.affinities[index(task)]].hardware_affinity;
        const auto id = inv.nodes.hardware[index(node)];
        if (wanted < 2 || wishes.empty() || id == NodeTable::no_hardware) return 0;
        const auto candidates = candidate_gpus(cluster, task, node);
        const auto enough = [&](const std::vector<GpuMask>& localities) {
            return std::any_of(localities.begin(), localities.end(), [&](GpuMask mask) {
                return gpu_count(static_cast<GpuMask>(mask & candidates)) >= wanted;
            });
        };
        const bool numa = std::any_of(wishes.begin(), wishes.end(),
                                      [](const auto& wish) { return wish.level == HardwareLevel::numa; });
        if (numa && enough(inv.hardware[id].numa)) return 2;
        return enough(inv.hardware[id].socket) ? 1 : 0;
    }
};

/// Scores all nodes equally, so the first wins.
struct FirstFit {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster&, TaskId, NodeId) const noexcept { return 0; }
};

/// Chooses any feasible node, all equally likely.
struct Random {
    std::uint64_t operator()(const Cluster&, TaskId, NodeId, Rng& rng) const noexcept { return rng(); }
};

namespace detail {

/// The mean of `percent(free after placing, capacity)` over the resources that the node has. Each part and
/// the mean are rounded down, as in Kubernetes.
template <class Percent>
[[nodiscard]] std::int64_t mean_percent(const Cluster& cluster, TaskId task, NodeId node,
                                        Percent&& percent) noexcept {
    const auto& n = cluster.inventory().nodes;
    const auto& t = cluster.inventory().tasks;
    const auto lent = cluster.lent_to(task);
    std::int64_t sum = 0, resources = 0;
    const auto add = [&](std::int64_t left, std::int64_t capacity) {
        if (capacity == 0) return;
        sum += percent(left, capacity);
        ++resources;
    };
    add(cluster.cpu_free_milli(node, lent) - t.cpu_milli[index(task)], n.cpu_milli[index(node)]);
    add(cluster.memory_free_mib(node) - t.memory_mib[index(task)], n.memory_mib[index(node)]);
    add(cluster.gpu_free_total_milli(node, lent) - cluster.gpu_milli(task),
        std::int64_t{whole_gpu_milli} * gpu_count(cluster.healthy_gpus(node)));
    return resources == 0 ? 0 : sum / resources;
}

}  // namespace detail

/// Kubernetes' LeastAllocated: prefers the node that would have the largest free part of CPU, memory and
/// GPUs.
///
/// The mean of `100 x free after placing / capacity` over the resources that the node has, 0 to 100. Each
/// part and the mean are rounded down, as in Kubernetes.
struct LeastAllocated {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        return detail::mean_percent(cluster, task, node, [](std::int64_t left, std::int64_t capacity) {
            return 100 * left / capacity;
        });
    }
};

/// Kubernetes' MostAllocated: the mean of `100 x used after placing / capacity` over the resources that the
/// node has, rounded down in the same way, 0 to 100.
struct MostAllocated {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        return detail::mean_percent(cluster, task, node, [](std::int64_t left, std::int64_t capacity) {
            return 100 * (capacity - left) / capacity;
        });
    }
};

/// The largest node of the cluster; free amounts and requests are divided by its amounts. A node's GPUs count
/// as one number. The defaults are those of the published comparison (Weng et al., ATC '23).
struct LargestNode {
    std::int64_t cpu_milli = 128'000;  ///< >= 1
    std::int64_t gpu_milli = 8'000;    ///< >= 1
    bool operator==(const LargestNode&) const = default;
};

/// Returns the largest amounts of any node of that inventory, at least 1 each. O(nodes).
[[nodiscard]] inline LargestNode largest_node(const Inventory& inventory) noexcept {
    LargestNode largest{1, 1};
    for (std::size_t node = 0; node < inventory.nodes.names.size(); ++node) {
        largest.cpu_milli = std::max(largest.cpu_milli, inventory.nodes.cpu_milli[node]);
        largest.gpu_milli =
            std::max(largest.gpu_milli, std::int64_t{whole_gpu_milli} * inventory.nodes.gpu_count[node]);
    }
    return largest;
}

namespace detail {

// Unit of parts of the largest node: exact for the default sizes, and products of two parts stay in 64 bits.
inline constexpr std::int64_t part_unit = 16'000'000;
[[nodiscard]] inline std::int64_t part(std::int64_t value, std::int64_t largest) noexcept {
    return std::min(value, 8 * largest) * part_unit / largest;
}

// 100 x (1 - numerator / denominator), truncated like the published scores.
[[nodiscard]] inline std::int64_t score_of_loss(std::int64_t numerator, std::int64_t denominator) noexcept {
    return (100 * denominator - 100 * numerator) / denominator;
}

}  // namespace detail

/// Best fit: prefers the least CPU and GPU left over. The score is `100 x (1 - (cpu left + gpu left) / 2)` in
/// parts of the largest node, truncated to whole numbers.
struct BestFit {
    static constexpr bool node_local = true;
    LargestNode largest{};
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        const auto lent = cluster.lent_to(task);
        const auto cpu =
            cluster.cpu_free_milli(node, lent) - cluster.inventory().tasks.cpu_milli[index(task)];
        const auto gpu = cluster.gpu_free_total_milli(node, lent) - cluster.gpu_milli(task);
        return detail::score_of_loss(detail::part(cpu, largest.cpu_milli) +
                                         detail::part(gpu, largest.gpu_milli),
                                     2 * detail::part_unit);
    }
};

/// Dot product: `100 x (1 - free . request / 2)` in parts of the largest node, truncated to whole numbers.
/// Prefers nodes with free amounts that line up least with the task's request, as in the published
/// comparison.
struct DotProduct {
    static constexpr bool node_local = true;
    LargestNode largest{};
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        const auto lent = cluster.lent_to(task);
        const auto cpu_free = detail::part(cluster.cpu_free_milli(node, lent), largest.cpu_milli);
        const auto gpu_free = detail::part(cluster.gpu_free_total_milli(node, lent), largest.gpu_milli);
        const auto cpu = detail::part(cluster.inventory().tasks.cpu_milli[index(task)], largest.cpu_milli);
        const auto gpu = detail::part(cluster.gpu_milli(task), largest.gpu_milli);
        return detail::score_of_loss(cpu_free * cpu + gpu_free * gpu,
                                     2 * detail::part_unit * detail::part_unit);
    }
};

/// Prefers GPUs that are shared already, then idle GPUs of a used node, then an empty node.
///
/// The scores of the published comparison (Weng et al., ATC '23). A fraction that fits a shared GPU scores
/// 100 minus a tenth of the percentage that is free on it. Otherwise a node with used GPUs scores 50 minus
/// the GPUs that the task takes, which is the same on all such nodes, and one without scores 33 minus its
/// GPUs. Tasks without GPUs score 0 everywhere.
struct GpuPacking {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        const auto& t = cluster.inventory().tasks;
        if (t.gpu_count[index(task)] == 0) return 0;
        const auto lent = cluster.lent_to(task);
        if (cluster.is_fraction(task)) {
            int tightest = whole_gpu_milli;
            for (int g = 0; g < cluster.gpu_count(node); ++g)
                if (const int free = cluster.gpu_free_milli(node, g, lent);
                    free >= t.gpu_share_milli[index(task)])
                    tightest = std::min(tightest, free);
            if (tightest < whole_gpu_milli) return 100 - tightest / 100;
        }
        const auto all = cluster.healthy_gpus(node);
        return cluster.idle_gpus(node, lent) == all ? 33 - gpu_count(all) : 50 - t.gpu_count[index(task)];
    }
};

/// Prefers nodes that already run tasks of the same class (a fraction, 1 GPU, 2 GPUs, ...), and best of all
/// no others.
///
/// Bands as in the published comparison (Weng et al., ATC '23): only that class 75, that class among others
/// 50, no GPU task at all 25, other classes alone 0. Inside a band, up to 25 is added: the more, the fewer
/// GPUs are free, in parts of the largest node. Tasks without GPUs score 0 everywhere and belong to no class.
/// O(tasks on the node).
struct GpuClustering {
    static constexpr bool node_local = true;
    /// The most GPUs of any node, in thousandths of a GPU, >= 1. Nodes with more free GPUs would leave their
    /// band.
    std::int64_t largest_gpu_milli = 8'000;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        if (cluster.inventory().tasks.gpu_count[index(task)] == 0) return 0;
        const int own = class_of(cluster, task);
        bool same = false, others = false;
        for (const auto neighbour : cluster.tasks_on(node))
            if (const int its = class_of(cluster, neighbour); its != no_class)
                (its == own ? same : others) = true;
        const int band = same ? (others ? 50 : 75) : others ? 0 : 25;
        const auto free = cluster.gpu_free_total_milli(node, cluster.lent_to(task));
        return band + 25 * (largest_gpu_milli - free) / largest_gpu_milli;
    }

  private:
    static constexpr int no_class = 0, fraction = -1;  // other classes: the number of whole GPUs
    static int class_of(const Cluster& cluster, TaskId task) noexcept {
        return cluster.is_fraction(task) ? fraction : cluster.inventory().tasks.gpu_count[index(task)];
    }
};

namespace detail {

/// The published score of a change of expected fragmentation: 0 to 100, 50 if nothing changes.
[[nodiscard]] inline std::int64_t fgd_score(const fragmentation::Fgd& metric, std::int64_t delta) noexcept {
    return static_cast<std::int64_t>(100.0 / (1.0 + std::exp(metric.to_gpus(delta))));
}

}  // namespace detail

/// Fragmentation gradient descent (Weng et al., ATC '23) as published: `100 x sigmoid(decrease of F in
/// GPUs)`, truncated to whole numbers; for a fraction with the best GPU of the node.
///
/// The truncation is part of the policy: it makes near-equal nodes equal, and the first of them fills up.
struct LeastFragmentation {
    static constexpr bool node_local = true;
    std::shared_ptr<const fragmentation::Fgd> metric;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        const auto choice = metric->best(cluster, task, node, candidate_gpus(cluster, task, node));
        return detail::fgd_score(*metric, choice.delta);
    }
};

/// Ranks nodes by `ExpectedFill::best`.
struct LeastFillLoss {
    static constexpr bool node_local = true;
    std::shared_ptr<const fragmentation::ExpectedFill> measure;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const {
        return (*this)(cluster, task, node, prepare(cluster, node));
    }
    [[nodiscard]] fragmentation::ExpectedFill::NodeState prepare(const Cluster& cluster, NodeId node) const {
        return measure->state(cluster, node);
    }
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node,
                            const fragmentation::ExpectedFill::NodeState& state) const {
        return measure->best(cluster, task, node, candidate_gpus(cluster, task, node), state).score;
    }
};

/// Each ranker breaks the ties that those before it leave.
template <NodeRanker... R>
struct Lexicographic {
    static constexpr bool node_local = (is_node_local<R> && ...);
    std::tuple<R...> rankers;

    explicit Lexicographic(R... r) : rankers(std::move(r)...) {}

    auto operator()(const Cluster& cluster, TaskId task, NodeId node, Rng& rng) const {
        return std::apply(
            [&](const R&... r) {
                return std::tuple<Score<R>...>{detail::ask(r, cluster, task, node, rng)...};
            },
            rankers);
    }
    [[nodiscard]] bool is_node_local() const {
        return std::apply([](const R&... r) { return (detail::node_local(r) && ...); }, rankers);
    }
    [[nodiscard]] auto for_task(const Cluster& cluster, TaskId task) const
        requires(detail::TaskRanker<R> || ...)
    {
        return std::apply(
            [&](const R&... r) {
                return Lexicographic<detail::ForTask<R>...>(detail::for_task(r, cluster, task)...);
            },
            rankers);
    }
};

/// A ranker with its weight.
template <NodeRanker R>
struct Part {
    std::int64_t weight;
    R ranker;
};
template <class R>
Part(std::int64_t, R) -> Part<R>;

/// `Weighted(Part{2, BestFit{}}, Part{1, Packing{}})`: the sum of weight x score.
///
/// Use scores with similar ranges (LeastAllocated, MostAllocated and the published scores: 0 to 100).
template <NodeRanker... R>
    requires(std::integral<Score<R>> && ...)
struct Weighted {
    static constexpr bool node_local = (is_node_local<R> && ...);
    std::tuple<R...> rankers;
    std::array<std::int64_t, sizeof...(R)> weights;

    explicit Weighted(Part<R>... parts) : rankers(std::move(parts.ranker)...), weights{parts.weight...} {}

    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node, Rng& rng) const {
        // Braces guarantee the order of calls, so that rankers draw random numbers in order.
        const auto scores = std::apply(
            [&](const R&... r) {
                return std::array<std::int64_t, sizeof...(R)>{
                    static_cast<std::int64_t>(detail::ask(r, cluster, task, node, rng))...};
            },
            rankers);
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < scores.size(); ++i) sum += weights[i] * scores[i];
        return sum;
    }
    [[nodiscard]] bool is_node_local() const {
        return std::apply([](const R&... r) { return (detail::node_local(r) && ...); }, rankers);
    }
    [[nodiscard]] auto for_task(const Cluster& cluster, TaskId task) const
        requires(detail::TaskRanker<R> || ...)
    {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return Weighted<detail::ForTask<R>...>(Part<detail::ForTask<R>>{
                weights[I], detail::for_task(std::get<I>(rankers), cluster, task)}...);
        }(std::index_sequence_for<R...>{});
    }
};

}  // namespace gpusched::allocation
