// SPDX-License-Identifier: Apache-2.0
// with_job() and with_jobs(): build a snapshot again with additional pending jobs.
#include <gpusched/allocation/job_request.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/model/gpu_names.hpp>

#include <set>
#include <utility>

namespace gpusched::allocation {

GPUSCHED_EXPORT ClusterWithJobs with_jobs(const Cluster& cluster, std::span<const JobRequest> jobs) {
    Problems problems;
    std::set<std::string> names;
    for (const auto& job : jobs) {
        const auto named = gpusched::quoted(job.name);
        if (job.name.empty()) problems.add(bad_value("name", named, "a name", "job"));
        if (cluster.inventory().job_names.find(job.name))
            problems.add(bad_value("name", named, "one that no job of the cluster has", "job"));
        if (!names.insert(job.name).second) problems.add(bad_value("name", named, "different names", "job"));
        if (job.pods.empty()) problems.add(bad_value("pods", "none", "at least one", "job " + named));
        for (const auto& group : job.pods)
            check_range(problems, "count", group.count, 1, 1'000'000, "job " + named);
    }
    problems.throw_if_any();
    auto spec = cluster.to_spec();
    ClusterWithJobs result;
    for (const auto& job : jobs) {
        auto& made = result.jobs.emplace_back();
        if (job.min_members != 0 || !job.subgroups.empty())
            spec.jobs.push_back(
                {.name = job.name, .min_members = job.min_members, .subgroups = job.subgroups});
        for (std::size_t g = 0; g < job.pods.size(); ++g)
            for (std::int64_t i = 0; i < job.pods[g].count; ++i) {
                auto pod = job.pods[g].pod;
                pod.name = job.name + "-" + std::to_string(made.groups.size());
                pod.job = job.name;
                if (i == 0)
                    resolve_gpu_models(pod, cluster);
                else
                    pod.gpu_models = spec.tasks.back().gpu_models;
                pod.node.reset();
                pod.gpus.clear();
                made.groups.push_back(static_cast<std::uint32_t>(g));
                spec.tasks.push_back(std::move(pod));
            }
    }
    result.cluster = Cluster::build(spec);
    for (std::size_t j = 0; j < jobs.size(); ++j)
        for (std::size_t pod = 0; pod < result.jobs[j].groups.size(); ++pod)
            result.jobs[j].pods.push_back(result.cluster.find_task(jobs[j].name + "-" + std::to_string(pod)));
    return result;
}

GPUSCHED_EXPORT ClusterWithJob with_job(const Cluster& cluster, const JobRequest& job) {
    auto made = with_jobs(cluster, std::span(&job, 1));
    return {std::move(made.jobs.front()), std::move(made.cluster)};
}

}  // namespace gpusched::allocation
