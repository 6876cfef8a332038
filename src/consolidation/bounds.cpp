// SPDX-License-Identifier: Apache-2.0
// Bounds on vacated nodes, GPUs and value.
#include "consolidation/pattern_lp.hpp"
#include "consolidation/slot_bound.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/bounds.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/threads.hpp>

#include <algorithm>

namespace gpusched::consolidation {

namespace detail {

GPUSCHED_EXPORT void require_lp(BoundMethod method, const Context& context) {
    if (method == BoundMethod::lp && context.lp == nullptr)
        throw BackendError(
            "the bound lp needs a solver of linear programs, and Context::lp has none: set it to "
            "gpusched::milp::clp() (component milp, built with Clp: apt-get install "
            "coinor-libclp-dev) or to a solver of your own, or choose the bound counting");
}

GPUSCHED_EXPORT Bound bound(const Cluster& cluster, const Scope& scope, BoundMethod method,
                            const LpSolver* lp, Budget& budget, ExecutorRef executor) {
    Bound result;
    if (method == BoundMethod::none) return result;
    std::int64_t occupied = 0, may_vacate = 0, gpus = 0;
    for (const auto node : cluster.nodes()) {
        occupied += cluster.occupants(node) > 0;
        if (!scope.may_vacate[index(node)]) continue;
        ++may_vacate;
        gpus += gpu_count(cluster.healthy_gpus(node));
    }
    const auto parts = components(cluster);
    std::vector<BinPacking> packings(parts.size());
    std::vector<MustStay> bounds(parts.size());
    run_parts(executor, budget, parts.size(), [&](std::size_t i) {
        packings[i] = make_bin_packing(cluster, scope, parts[i]);
        bounds[i] = counting_bound(packings[i]);
    });
    bool complete = true;
    if (method == BoundMethod::lp)
        for (std::size_t i = 0; i < parts.size(); ++i) {
            complete = complete && !budget.exhausted();
            if (!complete) continue;
            const auto tighter = pattern_bound(packings[i], bounds[i], cluster.inventory(), *lp, budget);
            complete = !budget.exhausted();  // an unfinished bound depends on the machine
            if (complete) bounds[i] = tighter;
        }
    MustStay must_stay;
    for (const auto& bound : bounds) {
        must_stay.nodes += bound.nodes;
        must_stay.gpus += bound.gpus;
    }
    result.vacated_nodes_at_most = may_vacate - must_stay.nodes;
    result.vacated_gpus_at_most = gpus - must_stay.gpus;
    result.occupied_nodes_at_least = occupied - result.vacated_nodes_at_most;
    result.method = enum_name(complete ? method : BoundMethod::counting);
    return result;
}

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
    run_parts(executor, budget, parts.size(), [&](std::size_t part) {
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
                if (!budget.exhausted())  // an unfinished bound depends on the machine
                    stay[p] = std::max(stay[p], tighter);
            }
            most[part][p] -= stay[p];
        }
        SlotBound slots(cluster, scope, parts[part], weights);
        for (std::size_t p = 0; p < prices.size() && !budget.exhausted(); ++p)
            most[part][p] = std::min(most[part][p], slots.value_at_most(prices[p]));
    });
    std::vector<std::int64_t> sum(prices.size());
    for (const auto& part : most)
        for (std::size_t p = 0; p < prices.size(); ++p) sum[p] += part[p];
    return sum;
}

}  // namespace detail

GPUSCHED_EXPORT Bound bound(const Cluster& cluster, BoundMethod method, const Options& options,
                            const Context& context) {
    validate(options, cluster);
    if (method == BoundMethod::none) throw InvalidInput("method: none; expected counting or lp");
    detail::require_lp(method, context);
    Budget budget(context, options.time_limit);
    const detail::Threads threads(options, context);
    return detail::bound(cluster, make_scope(cluster, options), method, context.lp, budget,
                         threads.executor());
}

}  // namespace gpusched::consolidation
