// Sources of documents: paths of files.
#pragma once

#include "support/bindings.hpp"

#include <string>

namespace gpusched::python {

/// True for what names a file: a string or anything with `__fspath__`.
bool is_path(const py::object& source);

/// The path as the system takes it.
/// @param argument how messages call it
/// @throws InvalidInput for what is no path
std::string path_text(const py::object& source, const char* argument = "path");

}  // namespace gpusched::python
