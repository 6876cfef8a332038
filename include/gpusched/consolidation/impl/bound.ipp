#pragma once

#include <gpusched/consolidation/bound.hpp>
#include <gpusched/consolidation/detail/packing.hpp>
#include <gpusched/consolidation/detail/pattern_lp.hpp>
#include <gpusched/core/lp.hpp>

namespace gpusched::consolidation {

namespace detail {

GPUSCHED_INLINE Bound bound(const Cluster& cluster, const Scope& scope, BoundMethod method, Budget& budget) {
    Bound result;
    if (method == BoundMethod::none) return result;
    std::int64_t occupied = 0, may_vacate = 0, gpus = 0;
    for (const auto node : cluster.nodes()) {
        occupied += cluster.occupants(node) > 0;
        if (!scope.may_vacate[index(node)]) continue;
        ++may_vacate;
        gpus += gpu_count(cluster.healthy_gpus(node));
    }
    MustStay must_stay;
    bool whole = true;
    for (const auto& component : components(cluster)) {
        const auto packing = make_packing(cluster, scope, component);
        const bool price = method == BoundMethod::lp && !budget.exhausted();
        whole = whole && (price || method == BoundMethod::counting);
        const auto part =
            price ? pattern_bound(packing, cluster.inventory(), budget) : counting_bound(packing);
        must_stay.nodes += part.nodes;
        must_stay.gpus += part.gpus;
    }
    result.vacated_nodes_at_most = may_vacate - must_stay.nodes;
    result.vacated_gpus_at_most = gpus - must_stay.gpus;
    result.occupied_nodes_at_least = occupied - result.vacated_nodes_at_most;
    result.method = to_string(whole ? method : BoundMethod::counting);
    return result;
}

}  // namespace detail

GPUSCHED_INLINE Bound bound(const Cluster& cluster, BoundMethod method, const Options& options,
                            const Context& context) {
    validate(options, cluster);
    if (method == BoundMethod::lp) require_lp();
    Budget budget(context, options.time_limit);
    return detail::bound(cluster, detail::make_scope(cluster, options), method, budget);
}

}  // namespace gpusched::consolidation
