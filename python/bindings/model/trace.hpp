// What Python holds of a trace: an unchanging one, shared by all that refer to it.
#pragma once

#include "support/bindings.hpp"

#include <gpusched/model/spec.hpp>

#include <memory>
#include <string>

namespace gpusched::python {

/// A trace with the columns of its source that the cluster format does not know: JSON objects of name -> one value per entry, null
/// where an entry has none; empty = no such columns.
struct NamedTrace : Trace {
    std::string node_columns{}, task_columns{};
};

using TracePtr = std::shared_ptr<NamedTrace>;

}  // namespace gpusched::python
