// Nodes and tasks given as objects where their names may stand.
#pragma once

#include "support/bindings.hpp"

namespace gpusched::python {

/// The value with the names of nodes and tasks in their place: of a `Node` or `Task` its name, of a list or another iterable of
/// which some are such objects a list, else the value itself. A name means the same in every cluster that has it.
py::object names_of(py::handle value);

}  // namespace gpusched::python
