// SPDX-License-Identifier: Apache-2.0
// Checks the options of preemption, and defines costs, scores and policy names.
#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/preemption/options.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace gpusched::preemption {

std::string detail::policies_with(bool PolicyTraits::*trait) {
    std::vector<std::string> names;
    for (const auto& row : policies)
        if (row.*trait) names.emplace_back(enum_name(row.policy));
    return either_of(names);
}

GPUSCHED_EXPORT void validate(const Options& options) {
    Problems problems;
    gpusched::detail::check_enumerator(problems, "policy", options.policy.named(), {});
    check_fields(problems, options);
    const auto finite = [&](const char* field, double value) {
        if (!std::isfinite(value)) problems.add(bad_value(field, number_text(value), "a finite number"));
    };
    if (options.engine != Options{}.engine && !detail::traits_of(options.policy).searches)
        problems.add("engine='" + std::string(enum_name(options.engine)) + "' is not supported by policy '" +
                     options.policy.name() + "'; use " +
                     detail::policies_with(&detail::PolicyTraits::searches));
    finite("numa_score", options.numa_score);
    finite("socket_score", options.socket_score);
    finite("cross_score", options.cross_score);
    // If two scores are in the wrong order, names the one that is not the default.
    const auto descending = [&](const char* near, double Options::*above, const char* far,
                                double Options::*below) {
        const auto larger = options.*above, smaller = options.*below;
        if (!(smaller > larger)) return;
        if (smaller == Options{}.*below)
            problems.add(bad_value(near, number_text(larger),
                                   "at least " + std::string(far) + ", which is " + number_text(smaller)));
        else
            problems.add(bad_value(far, number_text(smaller),
                                   "at most " + std::string(near) + ", which is " + number_text(larger)));
    };
    descending("numa_score", &Options::numa_score, "socket_score", &Options::socket_score);
    descending("socket_score", &Options::socket_score, "cross_score", &Options::cross_score);
    problems.throw_if_any();
}

GPUSCHED_EXPORT std::int64_t unsaved_s(const Cluster& cluster, TaskId task, std::int64_t now) noexcept {
    const auto& t = cluster.inventory().tasks;
    const auto saved = t.last_checkpoint_time[index(task)];
    const auto since = saved == TaskTable::no_time ? t.start_time[index(task)] : saved;
    return now <= since ? 0 : now - since;
}

GPUSCHED_EXPORT std::int64_t lost_work(const Cluster& cluster, TaskId task, std::int64_t now) noexcept {
    const auto& inv = cluster.inventory();
    auto size = cluster.gpu_milli(task);
    if (inv.tasks.is(TaskTrait::extras, task))
        size += std::int64_t{whole_gpu_milli} * inv.extras[inv.tasks.extras[index(task)]].device_count;
    return size * unsaved_s(cluster, task, now);
}

GPUSCHED_EXPORT std::int64_t gang_lost_work(const Cluster& cluster, TaskId task, std::int64_t now) noexcept {
    const auto& inv = cluster.inventory();
    const auto job = inv.tasks.job[index(task)];
    if (job == none<JobId> || !cluster.is_placed(task)) return lost_work(cluster, task, now);
    const auto subgroup = inv.subgroup_of(task);
    std::int64_t running = 0, in_subgroup = 0, sum = 0;
    for (const auto other : cluster.tasks()) {
        if (inv.tasks.job[index(other)] != job || !cluster.is_placed(other)) continue;
        ++running;
        if (inv.subgroup_of(other) == subgroup) ++in_subgroup;
        const auto more = std::min(lost_work(cluster, other, now), largest_cost);
        sum = std::min(sum, largest_cost - more) + more;
    }
    const auto needed = inv.job_min_members[index(job)];
    const bool alone =
        needed > 0 && running > needed &&
        (subgroup == none<SubgroupId> || in_subgroup > inv.subgroups[index(subgroup)].min_members);
    return alone ? lost_work(cluster, task, now) : sum;
}

GPUSCHED_EXPORT double priority_weight(std::int64_t priority) noexcept {
    return detail::PriorityWeight(priority).value();
}

GPUSCHED_EXPORT double score(double weights, double topology, double alpha) noexcept {
    return (weights >= 1 ? alpha / weights : alpha * (2 - weights)) + (1 - alpha) * topology;
}

GPUSCHED_EXPORT double paper_score(std::int64_t priority_sum, double topology, double alpha) noexcept {
    const auto sum = static_cast<double>(priority_sum);
    return priority_sum >= 1 ? alpha / sum + (1 - alpha) * topology
                             : alpha * (2 - 1 / (1 - sum)) + (1 - alpha) * topology;
}

GPUSCHED_EXPORT const Registry<VictimPolicy>& victim_policies() {
    static const auto all = [] {
        Registry<VictimPolicy> r("policy");
        for (const auto& row : enumerators<Policy>())
            r.add(row.name, [policy = row.value] { return policy; });
        return r;
    }();
    return all;
}

}  // namespace gpusched::preemption
