// Sources of documents: paths of files.
#pragma once

#include "support/bindings.hpp"

namespace gpusched::python {

/// True for a string or an object with `__fspath__`.
bool is_path(const py::object& source);

/// A path in the encoding of the file system.
/// @param argument name of the argument in messages
/// @throws InvalidInput for other objects
std::string path_text(const py::object& source, const char* argument = "path");

}  // namespace gpusched::python
