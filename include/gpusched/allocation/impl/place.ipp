#pragma once

#include <gpusched/allocation/named.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/core/errors.hpp>

#include <algorithm>
#include <string>

namespace gpusched::allocation {

GPUSCHED_INLINE std::optional<Destination> place(const Cluster& cluster, TaskId task,
                                                 const PlaceOptions& options) {
    if (index(task) >= cluster.task_count())
        throw InvalidInput("task is #" + std::to_string(index(task)) + "; expected one of the cluster's " +
                           std::to_string(cluster.task_count()));
    if (options.rankers.empty()) throw InvalidInput("rankers has 0 entries; expected at least 1");
    fragmentation::Workload workload;
    if (expects_workload(options.gpu_picker) ||
        std::any_of(options.rankers.begin(), options.rankers.end(), expects_workload))
        workload = options.workload ? *options.workload : fragmentation::typical_workload(cluster);

    RankerList rankers;
    for (const auto& name : options.rankers)
        rankers.rankers.push_back(make_ranker(name, cluster.inventory(), workload));
    FilterList filters;
    for (const auto& name : options.filters) filters.filters.push_back(make_filter(name));
    const auto picker = make_gpu_picker(options.gpu_picker, cluster.inventory(), workload);
    Rng rng(options.seed);
    return place(cluster, task, rankers, picker, rng, filters);
}

}  // namespace gpusched::allocation
