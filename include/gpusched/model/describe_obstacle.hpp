// SPDX-License-Identifier: Apache-2.0
// describe_obstacle: why a task may not run on a node, in words.
#pragma once

#include <gpusched/model/cluster.hpp>

#include <string>

namespace gpusched {

/// The first constraint that keeps `task` off `node` (see `find_obstacle`), with what it asks for and what there is:
/// which GPU model, label or taint, how much of a resource is missing, which group has how many members.
///
/// @return words that go on after "does not fit: ", such as `the node's GPU model is 'B'; the task accepts 'A'`; empty
///     where nothing is in the way
///
/// Only for messages: it costs far more than `find_obstacle`.
[[nodiscard]] std::string describe_obstacle(const Cluster& cluster, TaskId task, NodeId node);

}  // namespace gpusched
