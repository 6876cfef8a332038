// SPDX-License-Identifier: Apache-2.0
// Shared parts of the bindings of gpusched.fragmentation.
#pragma once

#include "support/bindings.hpp"

#include <gpusched/fragmentation/report.hpp>
#include <gpusched/fragmentation/workload.hpp>

namespace gpusched::python {

/// The report as a `gpusched._views.tables.Report`.
py::object report_table(const fragmentation::Report& report, fragmentation::GroupBy by);

/// Reads a workload: a Workload, a Trace or a Cluster (its typical tasks), or a list of dicts.
/// @param options for a Trace or a Cluster
fragmentation::Workload workload_argument(const py::object& source,
                                          const fragmentation::WorkloadOptions& options = {});

}  // namespace gpusched::python
