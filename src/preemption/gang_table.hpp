// SPDX-License-Identifier: Apache-2.0
// GangTable: which tasks of every job run, kept in step with a cluster.
#pragma once

#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpusched::preemption::detail {

/// The running tasks of every job, as linked lists: who comes or goes is taken in without a look at the others, and without
/// allocating once every slot was seen.
class GangTable {
  public:
    /// Starts again from the cluster. O(tasks).
    void read(const Cluster& cluster);
    /// Takes in that the task came, changed, left or was moved. It must do so for each before anything is asked.
    void update(const Cluster& cluster, TaskId task);
    /// A running task leaves for a preemptor while the search goes on: what is left of its gang is one still, were it one task.
    void evict(TaskId task);

    /// Some job is a gang.
    [[nodiscard]] bool any() const noexcept { return gangs_ > 0; }
    /// The job has more than one running task, those that were evicted included.
    [[nodiscard]] bool is_gang(JobId job) const noexcept {
        return index(job) < members_.size() && members_[index(job)] > 1;
    }
    [[nodiscard]] std::int64_t running(JobId job) const noexcept {
        return index(job) < count_.size() ? count_[index(job)] : 0;
    }
    /// The job that the task was last seen running for.
    [[nodiscard]] JobId job_of(TaskId task) const noexcept {
        return index(task) < job_.size() ? job_[index(task)] : none<JobId>;
    }
    /// How many running tasks of the job may leave before it is broken: those beyond `min_members`, none of a job that runs with
    /// fewer or that says nothing, all of whose tasks belong to the gang. Of its subgroups no more may leave than `surplus` of those.
    [[nodiscard]] std::int64_t surplus(const Inventory& inventory, JobId job) const noexcept {
        const auto needed = inventory.job_min_members[index(job)];
        return needed == 0 ? 0 : std::max<std::int64_t>(0, running(job) - needed);
    }
    /// How many running tasks of the subgroup may leave before its job is broken: those beyond `min_members`.
    [[nodiscard]] std::int64_t surplus(const Inventory& inventory, SubgroupId subgroup) const noexcept {
        const auto runs = index(subgroup) < in_subgroup_.size() ? in_subgroup_[index(subgroup)] : 0;
        return std::max<std::int64_t>(0, runs - inventory.subgroups[index(subgroup)].min_members);
    }
    /// How many of those that are in the same job and subgroup as the task, which has a job, may leave.
    [[nodiscard]] std::int64_t surplus_beside(const Inventory& inventory, TaskId task) const noexcept {
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
    void link(const Inventory& inventory, JobId job, TaskId task);
    void unlink(TaskId task);
    // The one that it counts in.
    [[nodiscard]] SubgroupId subgroup_of(TaskId task) const noexcept {
        return index(task) < subgroup_.size() ? subgroup_[index(task)] : none<SubgroupId>;
    }

    std::vector<TaskId> first_;          // by job
    std::vector<std::int64_t> count_;    // by job
    std::vector<std::int64_t> members_;  // by job: who runs, and who was evicted
    std::vector<TaskId> next_, before_;  // by task
    std::vector<JobId> job_;             // by task
    // Where jobs have subgroups: how many run, by subgroup; and which one each that runs counts in, by task.
    std::vector<std::int64_t> in_subgroup_;
    std::vector<SubgroupId> subgroup_;
    std::size_t gangs_ = 0;  // jobs with more than one member
};

}  // namespace gpusched::preemption::detail
