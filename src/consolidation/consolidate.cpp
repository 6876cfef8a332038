// SPDX-License-Identifier: Apache-2.0
#include "consolidation/goal_search.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/policies.hpp>

namespace gpusched::consolidation {

namespace detail {
template GPUSCHED_EXPORT Result consolidate(const Cluster&, const decltype(presets::best())&, const Options&,
                                            const Context&);
template GPUSCHED_EXPORT Result consolidate(const Cluster&, const decltype(presets::best(UnitWeight{}))&,
                                            const Options&, const Context&);
template GPUSCHED_EXPORT Result consolidate(const Cluster&, const decltype(presets::ipc())&, const Options&,
                                            const Context&);
template GPUSCHED_EXPORT Result consolidate(const Cluster&, const decltype(presets::ipc(UnitWeight{}))&,
                                            const Options&, const Context&);
template GPUSCHED_EXPORT Result consolidate(const Cluster&, const AnyPolicies&, const Options&,
                                            const Context&);
}  // namespace detail

GPUSCHED_EXPORT Result consolidate(const Cluster& cluster, const Options& options, const Context& context) {
    validate(options, cluster);
    if (options.goal) return detail::search_goal(cluster, options, context);
    return presets::visit(options.preset, options.objective, [&](const auto& policies) {
        return detail::consolidate(cluster, policies, options, context);
    });
}

}  // namespace gpusched::consolidation
