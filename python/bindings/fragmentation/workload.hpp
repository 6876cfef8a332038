// A workload from what callers may pass for one.
#pragma once

#include "support/bindings.hpp"

#include <gpusched/fragmentation/workload.hpp>

namespace gpusched::python {

/// From a Workload, a Trace or a Cluster whose typical tasks are meant, or a list of dicts.
/// @param options for a Trace or a Cluster
fragmentation::Workload workload_argument(const py::object& source,
                                          const fragmentation::WorkloadOptions& options = {});

}  // namespace gpusched::python
