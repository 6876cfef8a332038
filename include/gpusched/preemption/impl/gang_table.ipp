#pragma once

#include <gpusched/preemption/detail/cost.hpp>
#include <gpusched/preemption/detail/node_problem.hpp>

#include <algorithm>

namespace GPUSCHED_NAMESPACE::preemption::detail {

GPUSCHED_INTERNAL void GangTable::read(const Cluster& cluster, const CostFunction& cost, std::int64_t now) {
    const auto& inv = cluster.inventory();
    of_job.assign(inv.job_names.size(), {});
    for (const auto task : cluster.tasks()) {
        const auto job = inv.tasks.job[index(task)];
        if (job == none<JobId> || !cluster.is_placed(task)) continue;
        auto& gang = of_job[index(job)];
        gang.job = job;
        ++gang.surplus;  // running members so far
        gang.cost = std::min(gang.cost + cost_of(cluster, task, now, cost), largest_cost);
    }
    for (std::size_t j = 0; j < of_job.size(); ++j) {
        // Without a size that must run, all members belong to the gang.
        const auto needed = inv.job_min_members[j] > 0 ? inv.job_min_members[j] : of_job[j].surplus;
        of_job[j].surplus = std::max<std::int64_t>(0, of_job[j].surplus - needed);
    }
}

}  // namespace GPUSCHED_NAMESPACE::preemption::detail
