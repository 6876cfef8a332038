// SPDX-License-Identifier: Apache-2.0
// Why pending tasks do not wait for room on a node.
#pragma once

#include <gpusched/model/cluster.hpp>
#include <gpusched/model/spec.hpp>

#include <optional>
#include <span>
#include <string>

namespace gpusched {

/// Returns the reason why these tasks do not wait for room; absent if they do.
///
/// It is the reason of a job, or else of the first task that has one. Otherwise a gang is incomplete if it, or one
/// of its subgroups, has fewer members than must run. Members that wait for something else or are about to leave do
/// not count.
/// @param pods pending tasks
/// O(pods + tasks with a reason)
[[nodiscard]] std::optional<WaitingReason> find_waiting(const Cluster& cluster, std::span<const TaskId> pods);

/// Returns the first note of these pending tasks, such as the start that Slurm plans; empty if there is none.
/// Control characters are escaped, and at most 200 characters are returned.
[[nodiscard]] std::string find_note(const Inventory& inventory, std::span<const TaskId> pods);

/// Returns the reason in words, such as "its scheduling gates are not removed yet: example.com/approval".
[[nodiscard]] std::string describe_waiting(const WaitingReason& reason);

}  // namespace gpusched
