// SPDX-License-Identifier: Apache-2.0
#include "consolidation/bin_packing.hpp"
#include "consolidation/pattern_lp.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/bound.hpp>
#include <gpusched/consolidation/detail/threads.hpp>
#include <gpusched/core/lp.hpp>

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
    auto count = [&](std::size_t i) {
        packings[i] = make_bin_packing(cluster, scope, parts[i]);
        bounds[i] = counting_bound(packings[i]);
    };
    auto watch = [&] { (void)budget.exhausted(); };
    executor.run(parts.size(), IndexTask(count), WaitTask(watch));
    bool whole = true;
    if (method == BoundMethod::lp)
        for (std::size_t i = 0; i < parts.size(); ++i) {
            whole = whole && !budget.exhausted();
            if (!whole) continue;
            const auto tighter = pattern_bound(packings[i], bounds[i], cluster.inventory(), *lp, budget);
            whole = !budget.exhausted();  // otherwise how far it came depends on the machine
            if (whole) bounds[i] = tighter;
        }
    MustStay must_stay;
    for (const auto& bound : bounds) {
        must_stay.nodes += bound.nodes;
        must_stay.gpus += bound.gpus;
    }
    result.vacated_nodes_at_most = may_vacate - must_stay.nodes;
    result.vacated_gpus_at_most = gpus - must_stay.gpus;
    result.occupied_nodes_at_least = occupied - result.vacated_nodes_at_most;
    result.method = enum_name(whole ? method : BoundMethod::counting);
    return result;
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
