// Sources of documents: paths of files, and dicts.
#pragma once

#include "core/bindings.hpp"

#include <string>

namespace gpusched::python {

/// True for what names a file: a string or anything with `__fspath__`.
bool is_path(const py::object& source);

/// The path as the system takes it.
/// @throws InvalidInput for what is no path
std::string path_text(const py::object& source);

/// A dict as JSON text.
/// @param source how messages call it
/// @param arrays numbers and arrays of numpy are taken as numbers and lists
/// @throws InvalidInput with everything in it that has no JSON form
std::string json_text(const py::object& document, const char* source = "<dict>", bool arrays = false);

}  // namespace gpusched::python
