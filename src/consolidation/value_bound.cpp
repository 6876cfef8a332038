// SPDX-License-Identifier: Apache-2.0
#include "consolidation/bin_packing.hpp"
#include "consolidation/pattern_lp.hpp"
#include "consolidation/slot_bound.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/detail/value_bound.hpp>
#include <gpusched/consolidation/value.hpp>

#include <algorithm>

namespace gpusched::consolidation::detail {

GPUSCHED_EXPORT std::vector<std::int64_t> values_at_most(const Cluster& cluster, const Scope& scope,
                                                         Objective objective,
                                                         std::span<const std::int64_t> prices,
                                                         const LpSolver* lp, Budget& budget,
                                                         ExecutorRef executor) {
    const auto parts = components(cluster);
    std::vector<std::int64_t> weights(cluster.node_slots(), 1);
    if (objective == Objective::gpus)
        for (const auto node : cluster.nodes()) weights[index(node)] = gpu_count(cluster.healthy_gpus(node));
    std::vector<std::vector<std::int64_t>> most(parts.size(), std::vector<std::int64_t>(prices.size()));
    auto one = [&](std::size_t part) {
        const auto packing = make_bin_packing(cluster, scope, parts[part], true);
        std::vector<Stakes> stakes(prices.size());
        for (std::size_t p = 0; p < prices.size(); ++p)
            for (const auto& bin : packing.bins) {
                const auto weight = objective == Objective::gpus ? bin.weight : 1;
                const auto value = value_milli(weight, bin.cost, prices[p]);
                const auto opening = opening_milli(weight, scope.open_price);
                stakes[p].push_back(bin.may_open     ? opening
                                    : bin.may_vacate ? std::max<std::int64_t>(0, value)
                                                     : 0);
                if (!bin.may_open) most[part][p] += stakes[p].back() * bin.count;
            }
        auto stay = least_stay(packing, stakes);
        for (std::size_t p = 0; p < prices.size(); ++p) {
            if (lp != nullptr && !budget.exhausted()) {
                const auto tighter = least_stay(packing, stakes[p], cluster.inventory(), *lp, budget);
                if (!budget.exhausted())
                    stay[p] = std::max(stay[p], tighter);  // else it depends on the machine
            }
            most[part][p] -= stay[p];
        }
        SlotBound slots(cluster, scope, parts[part], weights);
        for (std::size_t p = 0; p < prices.size() && !budget.exhausted(); ++p)
            most[part][p] = std::min(most[part][p], slots.value_at_most(prices[p]));
    };
    auto watch = [&] { (void)budget.exhausted(); };
    executor.run(parts.size(), IndexTask(one), WaitTask(watch));
    std::vector<std::int64_t> sum(prices.size());
    for (const auto& part : most)
        for (std::size_t p = 0; p < prices.size(); ++p) sum[p] += part[p];
    return sum;
}

}  // namespace gpusched::consolidation::detail
