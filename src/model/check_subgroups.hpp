// SPDX-License-Identifier: Apache-2.0
// Checks of subgroups: those that a job lists, and the one that a task names.
#pragma once

#include "model/check_extras.hpp"
#include "model/owner.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

namespace gpusched::detail {

/// Those that a job lists, whatever else there is.
inline void check_subgroups(const JobSpec& job, Problems& problems) {
    if (job.subgroups.empty()) return;
    const Owner owner("job", job.name);
    std::unordered_set<std::string_view> seen;
    std::int64_t needed = 0;
    for (const auto& one : job.subgroups) {
        check_name(owner, "subgroups", one.name, problems);
        if (!seen.insert(one.name).second)
            problems.add(owner + ": names subgroup " + gpusched::quoted(one.name) + " twice");
        check_fields(problems, one, PartOwner(owner, "subgroup", one.name));
        needed = std::min(largest_quantity,
                          needed + std::clamp(one.min_members, std::int64_t{0}, largest_quantity));
    }
    if (job.min_members < needed)
        problems.add(bad_value("min_members", std::to_string(job.min_members),
                               "at least " + std::to_string(needed) + ", the sum of its subgroups",
                               owner.text()));
}

/// The one that a task names: its job, which is written, must list it.
inline void check_subgroup(const Inventory& inventory, const TaskSpec& task, Problems& problems) {
    if (task.subgroup.empty()) return;
    const auto job = inventory.job_names.find(task.job);
    if (job && inventory.find_subgroup(make_id<JobId>(*job), task.subgroup) != none<SubgroupId>) return;
    problems.add(bad_value("subgroup", gpusched::quoted(task.subgroup),
                           task.job.empty() ? "none, for a task without a job"
                                            : "one that job " + gpusched::quoted(task.job) + " lists",
                           Owner("task", task.name).text()));
}

/// Subgroups that tasks are in, where the job changes: they stay.
inline void check_subgroups_stay(const Inventory& inventory, JobId job, const JobSpec& to,
                                 Problems& problems) {
    for (const auto id : inventory.subgroups_of(job)) {
        const auto& old = inventory.subgroups[index(id)];
        const bool stays = std::any_of(to.subgroups.begin(), to.subgroups.end(),
                                       [&](const SubgroupSpec& one) { return one.name == old.name; });
        if (!stays && old.size > 0)
            problems.add(Owner("job", to.name) + ": subgroup " + gpusched::quoted(old.name) + " has " +
                         std::to_string(old.size) + (old.size == 1 ? " task" : " tasks") +
                         "; take them out first");
    }
}

}  // namespace gpusched::detail
