// SPDX-License-Identifier: Apache-2.0
// The queue of pending jobs.
#pragma once

#include <gpusched/model/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace gpusched::consolidation::detail {

/// A job, or a task without a job, with its pending pods.
struct QueuedJob {
    std::string name;
    bool is_job = false;  // jobs and tasks may share a name
    std::int64_t priority = std::numeric_limits<std::int64_t>::min();
    std::int64_t created = std::numeric_limits<std::int64_t>::max();
    std::vector<TaskId> pods;  // those that it needs come first
    std::size_t needed = 0;    // of the pods
    bool has_subgroups = false;
    bool one_by_one = false;  // each pod starts as soon as it has a place
};

/// Returns the jobs that wait, highest priority first, then the oldest, then by name.
[[nodiscard]] std::vector<QueuedJob> queue(const Cluster& cluster);

}  // namespace gpusched::consolidation::detail
