// SPDX-License-Identifier: Apache-2.0
// Computes the prices of all running tasks.
#include "admission/prices.hpp"
#include "preemption/request.hpp"

#include <gpusched/config.hpp>
#include <gpusched/preemption/options.hpp>

#include <algorithm>

namespace gpusched::admission::detail {

std::int64_t size_milli(const Cluster& cluster, TaskId task) noexcept {
    const auto gpus = cluster.gpu_milli(task);
    if (gpus > 0) return gpus;
    return std::max<std::int64_t>(100, cluster.inventory().tasks.cpu_milli[index(task)] / 16);
}

GPUSCHED_EXPORT PriceTable::PriceTable(const Cluster& cluster, std::span<const TaskId> pods,
                                       const Options& options, const consolidation::Scope& scope,
                                       const preemption::detail::GangTable& gangs)
    : of(cluster.task_slots()) {
    const auto& inv = cluster.inventory();
    unbroken.assign(inv.job_names.size(), 0);
    // A victim must have a lower priority than every pod, so the least important pod decides.
    preemption::Options victims;
    victims.now = options.now;
    victims.break_budgets = options.prices.budget_price_s.has_value();
    auto least_important = pods.front();
    for (const auto pod : pods) {
        if (inv.tasks.priority[index(pod)] < inv.tasks.priority[index(least_important)])
            least_important = pod;
        if (const auto job = inv.tasks.job[index(pod)]; job != none<JobId>) unbroken[index(job)] = 1;
    }
    const preemption::detail::Request request(cluster, least_important, victims);
    const auto now = options.now.value_or(inv.now);
    std::vector<std::uint8_t> spared(cluster.task_slots()), exempt(cluster.node_slots());
    for (const auto task : options.spare) spared[index(task)] = 1;
    for (const auto node : options.exempt) exempt[index(node)] = 1;
    const auto stays = [&](TaskId task) {
        return spared[index(task)] || exempt[index(cluster.node_of(task))];
    };
    // Gangs with a member that may not be evicted must not be broken.
    if (options.evictions && (gangs.any() || !options.spare.empty() || !options.exempt.empty()))
        for (const auto task : cluster.tasks())
            if (const auto job = inv.tasks.job[index(task)];
                job != none<JobId> && cluster.is_placed(task) &&
                (stays(task) ||
                 (gangs.any() && !preemption::detail::is_potential_victim(cluster, request, task))))
                unbroken[index(job)] = 1;
    const auto per_task = options.prices.task_price_s * 1000;
    for (const auto task : cluster.tasks()) {
        if (!cluster.is_placed(task) || stays(task)) continue;
        auto& price = of[index(task)];
        const auto size = size_milli(cluster, task);
        if (options.moves && scope.movable[index(task)])
            price.move =
                sum(product(product(size, options.prices.move_price_s), inv.tasks.move_cost[index(task)]),
                    per_task);
        if (options.evictions && preemption::detail::is_potential_victim(cluster, request, task)) {
            const auto job = inv.tasks.job[index(task)];
            const bool is_needed =
                job != none<JobId> && unbroken[index(job)] && gangs.surplus_of_peers(inv, task) == 0;
            if (!is_needed) {
                const auto work = options.prices.work
                                      ? product(size, preemption::unsaved_s(cluster, task, now))
                                      : std::int64_t{0};
                const auto loss = sum(work, per_task);
                // Plans do not describe local cores.
                const bool can_return = !inv.task_affinities[inv.tasks.affinities[index(task)]].cpu_local;
                if (options.replace && can_return)
                    price.replace = sum(loss, product(size, options.prices.restart_s));
                price.lose = sum(loss, product(size, options.prices.loss_s));
            }
        }
        price.least = std::min({price.move, price.replace, price.lose});
    }
}

std::int64_t PriceTable::borrowed_milli(const Cluster& cluster, TaskId task, NodeId node,
                                        GpuMask gpus) noexcept {
    if (!cluster.may_borrow(task)) return 0;
    const auto& t = cluster.inventory().tasks;
    if (t.gpu_count[index(task)] == 0) {
        const auto beyond =
            t.cpu_milli[index(task)] - std::max<std::int64_t>(0, cluster.cpu_free_milli(node));
        return std::max<std::int64_t>(0, beyond) / 16;
    }
    std::int64_t borrowed = 0;
    for_each_gpu(gpus & ~cluster.devices(node), [&](int g) {
        const auto share = std::int64_t{t.gpu_share_milli[index(task)]};
        borrowed += std::max<std::int64_t>(0, share - cluster.gpu_free_milli(node, g));
    });
    return borrowed;
}

}  // namespace gpusched::admission::detail
