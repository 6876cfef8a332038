// SPDX-License-Identifier: Apache-2.0
// Reads tasks that callers name or describe.
#pragma once

#include "model/cluster_views.hpp"
#include "support/documents.hpp"

#include <gpusched/model/spec.hpp>

#include <variant>

namespace gpusched::python {

/// Reads a task from a dict in the cluster format.
/// @param cluster its label levels may be named
/// @throws InvalidInput with all problems
TaskSpec task_spec(py::handle task, const Cluster* cluster = nullptr);

/// The cluster with new tasks. Ids differ from those of the cluster without them.
ClusterPtr with_tasks(const ClusterPtr& cluster, std::vector<TaskSpec> tasks);

/// Finds a node or task of a cluster by its name, or by an object with its name.
using NodeArgument = std::variant<std::string, NodeView>;
using TaskArgument = std::variant<std::string, TaskView>;
/// @throws InvalidInput if the cluster has none of this name
NodeId node_of(const Cluster& cluster, const NodeArgument& node);
TaskId task_of(const Cluster& cluster, const TaskArgument& task);

/// The task to place, in a cluster that contains it: a pending task by name, or a new task by its
/// description.
std::pair<ClusterPtr, TaskId> task_argument(const ClusterPtr& cluster, const py::object& task);

}  // namespace gpusched::python
