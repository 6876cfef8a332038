// SPDX-License-Identifier: Apache-2.0
// Traces in Python: unchangeable and shared by all references.
#pragma once

#include "support/bindings.hpp"

#include <gpusched/model/spec.hpp>

namespace gpusched::python {

/// A trace, and the columns of its source that the cluster format does not have: JSON objects from names to
/// one value per entry (null if missing); empty = no such columns.
struct NamedTrace : Trace {
    std::string node_columns{}, task_columns{};
};

using TracePtr = std::shared_ptr<NamedTrace>;

}  // namespace gpusched::python
