// SPDX-License-Identifier: Apache-2.0
// find_waiting(), find_note() and describe_waiting().
#include "model/node_match.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/waiting.hpp>

#include <cstdint>
#include <map>
#include <set>

namespace gpusched {

namespace detail {

/// Names the job, or its first subgroup, that has too few members to start.
static std::optional<WaitingReason> find_incomplete(const Cluster& cluster, JobId job) {
    const auto& inv = cluster.inventory();
    // Members that cannot run now, in the job and by subgroup.
    std::int64_t absent = 0, waiting = 0;
    std::map<SubgroupId, std::int64_t> absent_in;
    const auto leave_out = [&](TaskId task) {
        if (inv.tasks.job[index(task)] != job) return;
        ++absent;
        ++absent_in[inv.subgroup_of(task)];
    };
    for (const auto& [task, reason] : inv.waiting)
        if (!cluster.is_placed(task)) leave_out(task);
    waiting = absent;
    for (const auto task : inv.terminating)
        if (cluster.is_placed(task)) leave_out(task);
    const auto check = [&](const char* of, const std::string& name, std::int64_t size, std::int64_t missing,
                           std::int64_t needed) -> std::optional<WaitingReason> {
        const auto members = size - missing;
        if (members >= needed) return std::nullopt;
        const bool all = members == size;  // none waits for something else or leaves
        return WaitingReason{WaitingFor::gang_incomplete,
                             concat(of, quoted(name), " needs ", needed,
                                    is_kubernetes(inv) ? " pods" : " members", ", but only ", members,
                                    all ? "" : concat(" of ", size),
                                    all ? members == 1 ? " exists" : " exist" : " can run")};
    };
    // 0 = all of them, also those that wait for something else.
    const auto needed = inv.job_min_members[index(job)], size = std::int64_t{inv.job_size[index(job)]};
    if (auto found = check("job ", inv.job_names[index(job)], size, absent,
                           needed > 0    ? needed
                           : waiting > 0 ? size
                                         : 0))
        return found;
    for (const auto id : inv.subgroups_of(job)) {
        const auto& subgroup = inv.subgroups[index(id)];
        if (auto found = check("subgroup ", subgroup.name, std::int64_t{subgroup.size}, absent_in[id],
                               subgroup.min_members))
            return found;
    }
    return std::nullopt;
}

}  // namespace detail

GPUSCHED_EXPORT std::optional<WaitingReason> find_waiting(const Cluster& cluster,
                                                          std::span<const TaskId> pods) {
    const auto& inv = cluster.inventory();
    std::set<JobId> jobs;
    for (const auto pod : pods)
        if (const auto job = inv.tasks.job[index(pod)]; job != none<JobId>) jobs.insert(job);
    for (const auto job : jobs)
        if (const auto found = inv.job_waiting.find(job); found != inv.job_waiting.end())
            return found->second;
    if (!inv.waiting.empty())
        for (const auto pod : pods)
            if (const auto found = inv.waiting.find(pod); found != inv.waiting.end()) return found->second;
    for (const auto job : jobs)
        if (auto found = detail::find_incomplete(cluster, job)) return found;
    return std::nullopt;
}

GPUSCHED_EXPORT std::string find_note(const Inventory& inventory, std::span<const TaskId> pods) {
    for (const auto pod : pods)
        if (const auto found = inventory.notes.find(pod); found != inventory.notes.end())
            return printable(found->second, 200);
    return {};
}

GPUSCHED_EXPORT std::string describe_waiting(const WaitingReason& reason) {
    const auto text = [&]() -> std::string {
        switch (reason.waits_for) {
        case WaitingFor::gate:
            return "its scheduling gates are not removed yet";
        case WaitingFor::volume_claim:
            return reason.detail.starts_with("resource claim ") ? "a resource claim is not ready"
                                                                : "a volume claim is not ready";
        case WaitingFor::quota:
            return "there is no quota for it yet";
        case WaitingFor::limit:
            return "a limit of its account, QOS or partition holds it back";
        case WaitingFor::dependency:
            return "it waits for other jobs";
        case WaitingFor::begin_time:
            return "its begin time has not come";
        case WaitingFor::held:
            return "it is held until a person releases it";
        case WaitingFor::reservation:
            return "it waits for its reservation";
        case WaitingFor::gang_incomplete:
            return "its gang is incomplete";
        case WaitingFor::other_scheduler:
            return "another scheduler places it";
        case WaitingFor::other:
            break;
        }
        return "it waits for something else";
    }();
    return reason.detail.empty() ? text : text + ": " + reason.detail;
}

}  // namespace gpusched
