// Reads workloads from the objects that callers pass.
#pragma once

#include "support/bindings.hpp"

#include <gpusched/fragmentation/workload.hpp>

namespace gpusched::python {

/// From a Workload, a Trace or a Cluster (its typical tasks), or a list of dicts.
/// @param options for a Trace or a Cluster
fragmentation::Workload workload_argument(const py::object& source,
                                          const fragmentation::WorkloadOptions& options = {});

}  // namespace gpusched::python
