// SPDX-License-Identifier: Apache-2.0
// consolidate() with a preset, and the one compiled instantiation of the search.
#include "consolidation/goal_search.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/search.hpp>

namespace gpusched::consolidation {

template GPUSCHED_EXPORT Result detail::consolidate_validated(const Cluster&, const AnyPolicies&,
                                                              const Options&, const Context&);

GPUSCHED_EXPORT Result consolidate(const Cluster& cluster, const Options& options, const Context& context) {
    validate(options, cluster);
    if (options.goal) return detail::search_goal(cluster, options, context);
    return detail::consolidate_validated(cluster, make_policies(options.preset, {}, options.objective),
                                         options, context);
}

GPUSCHED_EXPORT void detail::clear_plan(const Cluster& cluster, Result& result) {
    auto& stats = result.stats;
    result.plan = {};
    static_cast<PlanStatistics&>(stats) = plan_statistics(cluster, cluster, result.plan);
    stats.vacated_weight = stats.opened_weight = stats.value_milli = stats.hops = 0;
}

}  // namespace gpusched::consolidation
