// SPDX-License-Identifier: Apache-2.0
// JobRequest: a job that is not in the snapshot yet, as groups of equal pods.
#pragma once

#include <gpusched/model/cluster.hpp>
#include <gpusched/model/spec.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpusched::allocation {

/// A number of equal pods.
struct PodRequest {
    std::int64_t count = 1;  ///< 1 to 1,000,000
    TaskSpec pod{};          ///< name, job, node and gpus are ignored
    bool operator==(const PodRequest&) const = default;
};

struct JobRequest {
    std::string name{};
    std::vector<PodRequest> pods{};
    /// As in JobSpec: how many pods must stay if other tasks need their place later. Initially all pods are
    /// placed, or none.
    std::int64_t min_members = 0;
    std::vector<SubgroupSpec> subgroups{};  ///< `PodRequest::pod.subgroup` names one
    bool operator==(const JobRequest&) const = default;
};

/// A job's pods in a snapshot.
struct JobPods {
    std::vector<TaskId> pods{};           ///< group by group
    std::vector<std::uint32_t> groups{};  ///< for each pod, its entry of JobRequest::pods
};

/// A snapshot with the job's pods, pending.
struct ClusterWithJob : JobPods {
    Cluster cluster{};
};

/// A snapshot with the pods of several jobs, pending; `jobs` in the order given.
struct ClusterWithJobs {
    Cluster cluster{};
    std::vector<JobPods> jobs{};
};

/// Returns the snapshot with one more job of pending pods: `<job>-0`, `<job>-1` and so on.
/// @throws InvalidInput for a job without name or pods, a name that the cluster has already, and a job or
///     pods that `Cluster::build` rejects
/// Costs as much as building the snapshot again.
[[nodiscard]] ClusterWithJob with_job(const Cluster& cluster, const JobRequest& job);

/// Does the same for several jobs at once.
/// @throws InvalidInput also for two jobs of one name
[[nodiscard]] ClusterWithJobs with_jobs(const Cluster& cluster, std::span<const JobRequest> jobs);

}  // namespace gpusched::allocation
