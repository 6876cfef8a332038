// SPDX-License-Identifier: Apache-2.0
// GangTable: the running tasks of every job, kept up to date with a cluster.
#pragma once

#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpusched::preemption::detail {

/// The running tasks of every job, as linked lists. An update is O(1) and does not allocate for known slots.
class GangTable {
  public:
    /// Reads all tasks of the cluster. O(tasks).
    void read(const Cluster& cluster);
    /// Updates the entry of a task that was added, changed, removed or moved. Call it for all such tasks
    /// before any query.
    void update(const Cluster& cluster, TaskId task);
    /// Removes an evicted task during a search. Its job still counts as a gang, even if only one task
    /// remains.
    void evict(TaskId task);

    /// Returns whether some job is a gang.
    [[nodiscard]] bool any() const noexcept { return gangs_ > 0; }
    /// Returns whether the job had more than one running task before the evictions of this search.
    [[nodiscard]] bool is_gang(JobId job) const noexcept {
        return index(job) < members_.size() && members_[index(job)] > 1;
    }
    [[nodiscard]] std::int64_t running(JobId job) const noexcept {
        return index(job) < count_.size() ? count_[index(job)] : 0;
    }
    /// The job under which the task is listed as running.
    [[nodiscard]] JobId job_of(TaskId task) const noexcept {
        return index(task) < job_.size() ? job_[index(task)] : none<JobId>;
    }
    /// The number of running tasks beyond the job's `min_members`: these may leave without breaking the gang.
    /// 0 if the job sets no `min_members`, since then all its tasks belong to the gang. The surplus of a
    /// subgroup limits its members in addition.
    [[nodiscard]] std::int64_t surplus(const Inventory& inventory, JobId job) const noexcept {
        const auto needed = inventory.job_min_members[index(job)];
        return needed == 0 ? 0 : std::max<std::int64_t>(0, running(job) - needed);
    }
    /// The number of running tasks beyond the subgroup's `min_members`: these may leave without breaking the
    /// gang.
    [[nodiscard]] std::int64_t surplus(const Inventory& inventory, SubgroupId subgroup) const noexcept {
        const auto runs = index(subgroup) < in_subgroup_.size() ? in_subgroup_[index(subgroup)] : 0;
        return std::max<std::int64_t>(0, runs - inventory.subgroups[index(subgroup)].min_members);
    }
    /// The number of tasks in the same job and subgroup as `task` that may leave. The task must have a job.
    [[nodiscard]] std::int64_t surplus_of_peers(const Inventory& inventory, TaskId task) const noexcept {
        const auto all = surplus(inventory, inventory.tasks.job[index(task)]);
        const auto subgroup = inventory.subgroup_of(task);
        return subgroup == none<SubgroupId> ? all : std::min(all, surplus(inventory, subgroup));
    }
    template <class Visit>
    void for_each(JobId job, Visit&& visit) const {
        if (index(job) >= first_.size()) return;
        for (auto task = first_[index(job)]; task != none<TaskId>; task = next_[index(task)]) visit(task);
    }

  private:
    void grow(const Cluster& cluster);
    void link(const Inventory& inventory, JobId job, TaskId task);
    void unlink(TaskId task);
    // The subgroup under which the task is counted.
    [[nodiscard]] SubgroupId subgroup_of(TaskId task) const noexcept {
        return index(task) < subgroup_.size() ? subgroup_[index(task)] : none<SubgroupId>;
    }

    std::vector<TaskId> first_;              // by job
    std::vector<std::int64_t> count_;        // by job
    std::vector<std::int64_t> members_;      // by job: running and evicted tasks
    std::vector<TaskId> next_, before_;      // by task
    std::vector<JobId> job_;                 // by task
    std::vector<std::int64_t> in_subgroup_;  // by subgroup: running tasks; empty without subgroups
    std::vector<SubgroupId> subgroup_;       // by task; empty without subgroups
    std::size_t gangs_ = 0;                  // jobs with more than one member
};

}  // namespace gpusched::preemption::detail
