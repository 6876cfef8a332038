// SPDX-License-Identifier: Apache-2.0
// The Lagrangian bound on slots, by subgradients.
#include "consolidation/slot_bound.hpp"
#include <gpusched/config.hpp>
#include <gpusched/consolidation/result.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace gpusched::consolidation::detail {

GPUSCHED_EXPORT SlotBound::SlotBound(const Cluster& cluster, const Scope& scope,
                                     std::span<const NodeId> component, std::span<const std::int64_t> weights)
    : least_cost_(std::numeric_limits<std::int64_t>::max()) {
    const auto& t = cluster.inventory().tasks;
    // The sizes with the most requested GPUs.
    std::array<std::int64_t, max_gpus_per_node + 1> asked{};
    for (const auto node : component)
        for (const auto task : cluster.tasks_on(node))
            if (scope.movable[index(task)]) {
                least_cost_ = std::min(least_cost_, t.move_cost[index(task)]);
                if (!cluster.is_fraction(task)) asked[t.gpu_count[index(task)]] += t.gpu_count[index(task)];
            }
    if (least_cost_ == std::numeric_limits<std::int64_t>::max()) least_cost_ = 0;
    std::vector<std::size_t> sizes;
    for (std::size_t size = 1; size < asked.size(); ++size)
        if (asked[size] > 0) sizes.push_back(size);
    std::stable_sort(sizes.begin(), sizes.end(), [&](auto a, auto b) { return asked[a] > asked[b]; });
    sizes.resize(std::min(sizes.size(), most_sizes));

    constexpr auto gpus = most_sizes, cores = most_sizes + 1;
    double all_gpus = 0, all_cores = 0;
    for (const auto node : component) {
        const bool opens = scope.opens(node);
        if (cluster.occupants(node) == 0 && !opens) continue;
        Node entry{weights[index(node)], 0, scope.may_vacate[index(node)] != 0, {}, {}};
        if (opens) {
            entry.opening = opening_milli(std::exchange(entry.weight, 0), scope.open_price);
            entry.may_vacate = true;
        }
        for (const auto task : cluster.tasks_on(node)) {
            if (!scope.movable[index(task)]) continue;
            entry.cost += t.move_cost[index(task)];
            entry.takes[gpus] += static_cast<double>(cluster.gpu_milli(task));
            entry.takes[cores] += static_cast<double>(t.cpu_milli[index(task)]);
            if (cluster.is_fraction(task)) continue;
            for (std::size_t s = 0; s < sizes.size(); ++s)
                entry.takes[s] += static_cast<double>(t.gpu_count[index(task)] / sizes[s]);
        }
        if (scope.receives(node)) {
            const auto idle = static_cast<std::size_t>(gpu_count(cluster.idle_gpus(node, Lent::yes)));
            for (std::size_t s = 0; s < sizes.size(); ++s)
                entry.gives[s] = static_cast<double>(idle / sizes[s]);
            for_each_gpu(cluster.healthy_gpus(node), [&](int g) {
                entry.gives[gpus] += std::max(0, cluster.gpu_free_milli(node, g, Lent::yes));
            });
            entry.gives[cores] =
                static_cast<double>(std::max<std::int64_t>(0, cluster.cpu_free_milli(node, Lent::yes)));
        }
        all_gpus += entry.takes[gpus] + entry.gives[gpus];
        all_cores += entry.takes[cores] + entry.gives[cores];
        nodes_.push_back(entry);
    }
    double weight = 0;
    for (const auto& node : nodes_) weight += static_cast<double>(node.weight) * milli;
    scale_[gpus] = all_gpus > 0 ? weight / all_gpus : 0;
    scale_[cores] = all_cores > 0 ? weight / all_cores : 0;
    for (std::size_t s = 0; s < sizes.size(); ++s) scale_[s] = 1;
    start_[gpus] = scale_[gpus] / 2;
}

double SlotBound::evaluate(const Terms& multipliers, std::int64_t price, Terms& gradient) const {
    double sum = 0;
    gradient = {};
    for (const auto& node : nodes_) {
        double stays = -static_cast<double>(node.opening), leaves = 0;
        for (std::size_t i = 0; i < terms; ++i) stays += multipliers[i] * node.gives[i];
        if (node.may_vacate) {
            leaves = static_cast<double>(value_milli(node.weight, node.cost, price));
            for (std::size_t i = 0; i < terms; ++i) leaves -= multipliers[i] * node.takes[i];
        }
        if (node.may_vacate && leaves > stays) {
            sum += leaves;
            for (std::size_t i = 0; i < terms; ++i) gradient[i] -= node.takes[i];
        } else {
            sum += stays;
            for (std::size_t i = 0; i < terms; ++i) gradient[i] += node.gives[i];
        }
    }
    return sum;
}

GPUSCHED_EXPORT std::int64_t SlotBound::value_at_most(std::int64_t price) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max() / 4;
    const auto limit = static_cast<double>(price) * static_cast<double>(least_cost_);
    const auto allowed = [&](Terms& x) {
        double sum = 0;
        for (std::size_t i = 0; i < terms; ++i) {
            x[i] = std::max(0.0, x[i]);
            if (i < most_sizes) sum += x[i];
        }
        if (sum > limit)
            for (std::size_t i = 0; i < most_sizes; ++i) x[i] *= limit / sum * (1 - 1e-12);
    };
    auto at = start_, best_at = start_;
    Terms gradient{}, squares{};
    double best = std::numeric_limits<double>::infinity();
    for (int iteration = 0; iteration < 100; ++iteration) {
        allowed(at);
        const auto value = evaluate(at, price, gradient);
        if (value < best) {
            best = value;
            best_at = at;
        }
        for (std::size_t i = 0; i < terms; ++i) {
            if (gradient[i] == 0) continue;
            squares[i] += gradient[i] * gradient[i];
            const auto scale = i < most_sizes ? scale_[i] * limit : scale_[i];
            at[i] -= 0.5 * scale * gradient[i] / std::sqrt(squares[i]);
        }
    }
    start_ = best_at;
    const auto rounded = std::ceil(best + 1e-9 * std::abs(best) + 1e-6);
    return rounded < static_cast<double>(most) ? static_cast<std::int64_t>(rounded) : most;
}

}  // namespace gpusched::consolidation::detail
