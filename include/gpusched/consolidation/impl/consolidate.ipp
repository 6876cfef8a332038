#pragma once

#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/detail/goal_search.hpp>
#include <gpusched/consolidation/presets.hpp>

namespace GPUSCHED_NAMESPACE::consolidation {

GPUSCHED_INLINE Result consolidate(const Cluster& cluster, const Options& options, const Context& context) {
    validate(options, cluster);
    if (options.goal) return detail::search_goal(cluster, options, context);
    return presets::visit(options.preset, options.objective, [&](const auto& policies) {
        return detail::consolidate(cluster, policies, options, context);
    });
}

}  // namespace GPUSCHED_NAMESPACE::consolidation
