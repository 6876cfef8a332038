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

/// Pods that ask for the same.
struct PodRequest {
    std::int64_t count = 1;  ///< 1 .. 1,000,000
    TaskSpec pod{};          ///< name, job, node and gpus are not looked at
    bool operator==(const PodRequest&) const = default;
};

struct JobRequest {
    std::string name{};
    std::vector<PodRequest> pods{};
    /// As in JobSpec. All pods are placed, or none; these say how many must stay when somebody needs their room later.
    std::int64_t min_members = 0;
    std::vector<SubgroupSpec> subgroups{};  ///< `PodRequest::pod.subgroup` names one
    bool operator==(const JobRequest&) const = default;
};

/// A job's pods in a snapshot.
struct JobPods {
    std::vector<TaskId> pods{};           ///< group by group
    std::vector<std::uint32_t> groups{};  ///< the entry of JobRequest::pods that each comes from
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

/// The snapshot with one more job of pending pods: `<job>-0`, `<job>-1` and so on.
/// @throws InvalidInput for a job without name or pods, a name that the cluster has already, and what `Cluster::build` refuses
///         of the job and its pods
/// Costs as much as building the snapshot again.
[[nodiscard]] ClusterWithJob with_job(const Cluster& cluster, const JobRequest& job);

/// The same for several jobs at once.
/// @throws InvalidInput also for two jobs of one name
[[nodiscard]] ClusterWithJobs with_jobs(const Cluster& cluster, std::span<const JobRequest> jobs);

}  // namespace gpusched::allocation
