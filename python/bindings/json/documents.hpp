// JSON documents as Python objects.
#pragma once

#include "core/bindings.hpp"

#include <gpusched/json/document.hpp>

#include <cstdint>
#include <string_view>

namespace gpusched::python {

/// A value of a document.
py::object to_python(const json::Document& document, std::uint32_t at = 0);

/// A document that the library wrote.
py::object parsed(std::string_view text);

}  // namespace gpusched::python
