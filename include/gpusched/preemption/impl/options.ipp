#pragma once

#include <gpusched/preemption/options.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace GPUSCHED_NAMESPACE::preemption {

GPUSCHED_INLINE void validate(const Options& options) {
    Problems problems;
    gpusched::detail::check_enumerator(problems, "policy", options.policy.named(), {});
    check_fields(problems, options);
    const auto finite = [&](const char* field, double value) {
        if (!std::isfinite(value)) problems.add(bad_value(field, number_text(value), "a finite number"));
    };
    const auto searches = options.policy == Policy::imp || options.policy == Policy::exhaustive ||
                          options.policy == Policy::spot_exact;
    if (options.engine != Options{}.engine && !searches)
        problems.add(bad_value("engine", enum_name(options.engine),
                               "the default with policy " + std::string(options.policy.name()) +
                                   ", which searches in one way; imp, exhaustive and spot_exact have two"));
    finite("numa_score", options.numa_score);
    finite("socket_score", options.socket_score);
    finite("cross_score", options.cross_score);
    // Of two scores in the wrong order the caller is told of the one that is not the default.
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

GPUSCHED_INLINE std::int64_t unsaved_s(const Cluster& cluster, TaskId task, std::int64_t now) noexcept {
    const auto& t = cluster.inventory().tasks;
    const auto saved = t.last_checkpoint_time[index(task)];
    const auto since = saved == TaskTable::no_time ? t.start_time[index(task)] : saved;
    return now <= since ? 0 : now - since;
}

GPUSCHED_INLINE std::int64_t lost_work(const Cluster& cluster, TaskId task, std::int64_t now) noexcept {
    return cluster.gpu_milli(task) * unsaved_s(cluster, task, now);
}

GPUSCHED_INLINE double priority_weight(std::int64_t priority) noexcept {
    return detail::PriorityWeight(priority).value();
}

GPUSCHED_INLINE double score(double weights, double topology, double alpha) noexcept {
    return (weights >= 1 ? alpha / weights : alpha * (2 - weights)) + (1 - alpha) * topology;
}

GPUSCHED_INLINE double paper_score(std::int64_t priority_sum, double topology, double alpha) noexcept {
    const auto sum = static_cast<double>(priority_sum);
    return priority_sum >= 1 ? alpha / sum + (1 - alpha) * topology
                             : alpha * (2 - 1 / (1 - sum)) + (1 - alpha) * topology;
}

}  // namespace GPUSCHED_NAMESPACE::preemption
