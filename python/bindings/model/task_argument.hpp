// Tasks as callers name them where one is to be placed.
#pragma once

#include "model/cluster_views.hpp"
#include "support/documents.hpp"

#include <gpusched/model/spec.hpp>

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace gpusched::python {

/// A task from its description in the cluster format, a dict.
/// @param cluster whose label levels it may name
/// @throws InvalidInput with everything that is wrong
TaskSpec task_spec(py::handle task, const Cluster* cluster = nullptr);

/// The cluster with new tasks. Ids of the one without them are not those of this one.
ClusterPtr with_tasks(const ClusterPtr& cluster, std::vector<TaskSpec> tasks);

/// A node or task of a cluster by its name, or as an object that stands for its name.
using NodeArgument = std::variant<std::string, NodeView>;
using TaskArgument = std::variant<std::string, TaskView>;
/// @throws InvalidInput where the cluster has none of that name
NodeId node_of(const Cluster& cluster, const NodeArgument& node);
TaskId task_of(const Cluster& cluster, const TaskArgument& task);

/// The task to place, in a cluster that has it: the name of a pending one, or a description of a new one.
std::pair<ClusterPtr, TaskId> task_argument(const ClusterPtr& cluster, const py::object& task);

}  // namespace gpusched::python
