// SPDX-License-Identifier: Apache-2.0
// Random subgroups of jobs, and a naive count of the tasks that may leave them.
#pragma once

#include "support/catch.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/model/spec.hpp>

namespace testing_support {

/// Gives the job two subgroups; `min_members` is raised to their sum.
inline void add_subgroups(gpusched::Rng& rng, gpusched::JobSpec& job, std::int64_t most = 2) {
    std::int64_t sum = 0;
    for (const char* name : {"a", "b"}) {
        job.subgroups.push_back({name, rng.between(0, most)});
        sum += job.subgroups.back().min_members;
    }
    job.min_members = std::max(job.min_members, sum);
}

/// Most tasks of jobs with subgroups are in one.
inline void join_subgroups(gpusched::Rng& rng, gpusched::ClusterSpec& spec) {
    for (auto& task : spec.tasks)
        for (const auto& job : spec.jobs)
            if (job.name == task.job && !job.subgroups.empty() && rng.chance(0.8))
                task.subgroup = rng.chance(0.5) ? "a" : "b";
}

/// Subgroups for some of the jobs of a cluster whose tasks are known.
inline void add_subgroups(gpusched::Rng& rng, gpusched::ClusterSpec& spec, double share = 0.5) {
    for (auto& job : spec.jobs)
        if (rng.chance(share)) add_subgroups(rng, job);
    join_subgroups(rng, spec);
}

/// Does the job, or one of its subgroups, have too few members to start?
inline bool is_incomplete(const gpusched::ClusterSpec& spec, const std::string& name) {
    for (const auto& job : spec.jobs) {
        if (job.name != name) continue;
        std::int64_t all = 0;
        std::map<std::string, std::int64_t> members;
        for (const auto& task : spec.tasks)
            if (task.job == name) ++all, ++members[task.subgroup];
        bool incomplete = all < job.min_members;
        for (const auto& subgroup : job.subgroups)
            incomplete = incomplete || members[subgroup.name] < subgroup.min_members;
        return incomplete;
    }
    return false;
}

/// When these running tasks of the job leave and the others stay: is it a gang still? At least `min_members` stay, and of each
/// subgroup that loses one at least its own. A subgroup without a number loses no task.
inline bool stays_a_gang(const gpusched::ClusterSpec& spec, const std::string& name,
                         const std::vector<std::size_t>& leaving) {
    if (leaving.empty()) return true;
    for (const auto& job : spec.jobs) {
        if (job.name != name) continue;
        std::int64_t stay = 0;
        for (std::size_t t = 0; t < spec.tasks.size(); ++t)
            if (spec.tasks[t].job == name && spec.tasks[t].node)
                stay += std::count(leaving.begin(), leaving.end(), t) == 0;
        if (job.min_members == 0 || stay < job.min_members) return false;
        for (const auto& subgroup : job.subgroups) {
            std::int64_t gone_of_it = 0, stay_of_it = 0;
            for (std::size_t t = 0; t < spec.tasks.size(); ++t) {
                const auto& task = spec.tasks[t];
                if (task.job != name || task.subgroup != subgroup.name || !task.node) continue;
                ++(std::count(leaving.begin(), leaving.end(), t) > 0 ? gone_of_it : stay_of_it);
            }
            if (gone_of_it > 0 && stay_of_it < subgroup.min_members) return false;
        }
        return true;
    }
    return false;
}

}  // namespace testing_support
