// SPDX-License-Identifier: Apache-2.0
// allocate(): places one gang in a working copy of the cluster, or in the cluster itself.
#include "allocation/gang.hpp"

#include <gpusched/allocation/allocate.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/model/waiting.hpp>

#include <optional>
#include <string>

namespace gpusched::allocation {

namespace detail {

/// Leaves an invalid limit out: `Gang` rejects it together with all other errors.
static std::optional<double> limit_of(const AllocateOptions& options) {
    return options.time_limit && *options.time_limit >= 0 ? options.time_limit : std::nullopt;
}

}  // namespace detail

GPUSCHED_EXPORT Allocation place_gang(Cluster& cluster, std::span<const TaskId> pods,
                                      const AllocateOptions& options, const Context& context) {
    Budget budget(context, detail::limit_of(options));
    budget.report("allocation", 0, 0);
    return detail::Gang(cluster, pods, options, &budget).place();
}

GPUSCHED_EXPORT Allocation allocate(const Cluster& cluster, std::span<const TaskId> pods,
                                    const AllocateOptions& options, const Context& context) {
    Budget budget(context, detail::limit_of(options));
    budget.report("allocation", 0, 0);
    Cluster copy(cluster);
    copy.commit();
    return detail::Gang(copy, pods, options, &budget).place();
}

GPUSCHED_EXPORT std::vector<TaskId> pending_pods(const Cluster& cluster, std::string_view job) {
    const auto id = cluster.inventory().job_names.find(job);
    std::vector<TaskId> pods;
    if (!id) {
        const auto task = cluster.inventory().tasks.names.find(job);
        if (!task)
            throw InvalidInput(bad_value("job", gpusched::quoted(job), "a job or a task of the cluster"));
        if (!cluster.is_placed(make_id<TaskId>(*task))) pods.push_back(make_id<TaskId>(*task));
        return pods;
    }
    const auto& waiting = cluster.inventory().waiting;
    std::vector<TaskId> ready;
    for (const auto task : cluster.tasks()) {
        if (cluster.inventory().tasks.job[index(task)] != make_id<JobId>(*id) || cluster.is_placed(task))
            continue;
        pods.push_back(task);
        if (!waiting.contains(task)) ready.push_back(task);
    }
    const bool can_start = !ready.empty() && !find_waiting(cluster, ready);
    return can_start ? ready : pods;
}

GPUSCHED_EXPORT Plan to_plan(const Allocation& allocation) {
    Plan plan;
    plan.placements = allocation.pods;
    return plan;
}

}  // namespace gpusched::allocation
