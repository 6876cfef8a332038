// Node and Task objects in place of their names.
#pragma once

#include "support/bindings.hpp"

namespace gpusched::python {

/// The value with `Node` and `Task` objects replaced by their names, also in lists and other iterables, which
/// become lists. A name means the same in every cluster that contains it.
py::object names_of(py::handle value);

}  // namespace gpusched::python
