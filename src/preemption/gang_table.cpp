// SPDX-License-Identifier: Apache-2.0
// Updates the lists of running tasks of every job.
#include "preemption/gang_table.hpp"

#include <gpusched/config.hpp>

namespace gpusched::preemption::detail {

GPUSCHED_EXPORT void GangTable::read(const Cluster& cluster) {
    const auto& inv = cluster.inventory();
    *this = {};
    grow(cluster);
    for (const auto task : cluster.tasks())
        if (const auto job = inv.tasks.job[index(task)]; job != none<JobId> && cluster.is_placed(task))
            link(inv, job, task);
}

// Adds entries for new tasks and jobs.
void GangTable::grow(const Cluster& cluster) {
    const auto tasks = cluster.task_slots(), jobs = cluster.inventory().job_names.size();
    job_.resize(tasks, none<JobId>);
    next_.resize(tasks);
    before_.resize(tasks);
    first_.resize(jobs, none<TaskId>);
    count_.resize(jobs);
    members_.resize(jobs);
}

void GangTable::update(const Cluster& cluster, TaskId task) {
    const auto& inv = cluster.inventory();
    if (job_.size() < cluster.task_slots() || first_.size() < inv.job_names.size()) grow(cluster);
    const bool runs = cluster.contains(task) && cluster.is_placed(task);
    const auto job = runs ? inv.tasks.job[index(task)] : none<JobId>;
    const auto before = job_[index(task)];
    if (before == job && (job == none<JobId> || subgroup_of(task) == inv.subgroup_of(task))) return;
    if (before != none<JobId>) {
        unlink(task);
        if (--members_[index(before)] == 1) --gangs_;
    }
    if (job != none<JobId>) link(inv, job, task);
}

void GangTable::evict(TaskId task) {
    if (job_of(task) != none<JobId>) unlink(task);
}

void GangTable::link(const Inventory& inventory, JobId job, TaskId task) {
    const auto t = index(task);
    auto& first = first_[index(job)];
    job_[t] = job;
    next_[t] = first;
    before_[t] = none<TaskId>;
    if (first != none<TaskId>) before_[index(first)] = task;
    first = task;
    ++count_[index(job)];
    if (++members_[index(job)] == 2) ++gangs_;
    const auto subgroup = inventory.subgroup_of(task);
    if (subgroup == none<SubgroupId>) return;
    if (in_subgroup_.size() <= index(subgroup)) in_subgroup_.resize(inventory.subgroups.size());
    if (subgroup_.size() <= t) subgroup_.resize(job_.size(), none<SubgroupId>);
    subgroup_[t] = subgroup;
    ++in_subgroup_[index(subgroup)];
}

void GangTable::unlink(TaskId task) {
    const auto t = index(task);
    const auto job = index(job_[t]);
    (before_[t] == none<TaskId> ? first_[job] : next_[index(before_[t])]) = next_[t];
    if (next_[t] != none<TaskId>) before_[index(next_[t])] = before_[t];
    --count_[job];
    job_[t] = none<JobId>;
    if (const auto subgroup = subgroup_of(task); subgroup != none<SubgroupId>) {
        subgroup_[t] = none<SubgroupId>;
        --in_subgroup_[index(subgroup)];
    }
}

}  // namespace gpusched::preemption::detail
