#pragma once

#include <gpusched/allocation/job_request.hpp>
#include <gpusched/core/checks.hpp>

#include <utility>

namespace gpusched::allocation {

GPUSCHED_INLINE ClusterWithJob with_job(const Cluster& cluster, const JobRequest& job) {
    const auto owner = "job " + gpusched::quoted(job.name);
    Problems problems;
    if (job.name.empty()) problems.add(bad_value("name", gpusched::quoted(job.name), "a name", "job"));
    if (cluster.inventory().job_names.find(job.name))
        problems.add(
            bad_value("name", gpusched::quoted(job.name), "one that no job of the cluster has", "job"));
    if (job.pods.empty()) problems.add(bad_value("pods", "none", "at least one", owner));
    for (const auto& group : job.pods) check_range(problems, "count", group.count, 1, 1'000'000, owner);
    problems.throw_if_any();
    auto spec = cluster.to_spec();
    ClusterWithJob result;
    for (std::size_t g = 0; g < job.pods.size(); ++g)
        for (std::int64_t i = 0; i < job.pods[g].count; ++i) {
            auto pod = job.pods[g].pod;
            pod.name = job.name + "-" + std::to_string(result.pods.size());
            pod.job = job.name;
            pod.node.reset();
            pod.gpus.clear();
            result.pods.push_back(make_id<TaskId>(spec.tasks.size()));
            result.groups.push_back(static_cast<std::uint32_t>(g));
            spec.tasks.push_back(std::move(pod));
        }
    result.cluster = Cluster::build(spec);
    return result;
}

}  // namespace gpusched::allocation
