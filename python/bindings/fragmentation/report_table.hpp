// Fragmentation reports as tables.
#pragma once

#include "support/bindings.hpp"

#include <gpusched/fragmentation/report.hpp>

namespace gpusched::python {

/// The report as a `gpusched._views.tables.Report`.
py::object report_table(const fragmentation::Report& report, fragmentation::GroupBy by);

}  // namespace gpusched::python
