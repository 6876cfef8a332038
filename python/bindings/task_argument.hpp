// Tasks as callers name them where one is to be placed.
#pragma once

#include "cluster_views.hpp"

#include <utility>

namespace gpusched::python {

/// The task to place, in a cluster that has it: the name of a pending one, or a description of a new one.
std::pair<ClusterPtr, TaskId> task_argument(const ClusterPtr& cluster, const py::object& task);

}  // namespace gpusched::python
