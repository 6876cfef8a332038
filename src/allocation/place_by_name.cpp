// SPDX-License-Identifier: Apache-2.0
// place() with policies chosen by name.
#include <gpusched/allocation/named.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/allocation/place_by_name.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <string>

namespace gpusched::allocation {

GPUSCHED_EXPORT std::optional<Destination> place(const Cluster& cluster, TaskId task,
                                                 const PlaceOptions& options, const Registries& known) {
    detail::require_task(cluster, task);
    if (cluster.is_placed(task))
        throw InvalidInput(bad_value("task", gpusched::quoted(cluster.name(task)),
                                     "a pending task; this one runs on node " +
                                         gpusched::quoted(cluster.name(cluster.node_of(task)))));
    if (options.rankers.empty()) throw InvalidInput(bad_value("rankers", "0 entries", "at least 1"));
    const auto make = [&](const auto& registry, const std::string& name) {
        fragmentation::Workload made;
        if (!options.workload && registry.expects_workload(name))
            made = fragmentation::typical_workload(cluster, registry.workload_options(name));
        return registry.make(name, cluster.inventory(), options.workload ? *options.workload : made);
    };
    RankerList ranker;
    for (const auto& name : options.rankers) ranker.rankers.push_back(make(known.rankers, name));
    FilterList filter;
    for (const auto& name : options.filters) filter.filters.push_back(known.filters.make(name));
    const auto picker = make(known.gpu_pickers, options.gpu_picker);
    Rng rng(options.seed);
    return place(cluster, task, ranker, picker, rng, filter);
}

}  // namespace gpusched::allocation
