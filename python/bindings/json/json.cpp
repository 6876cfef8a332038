// SPDX-License-Identifier: Apache-2.0
// JSON documents for the package's own modules. There is no public module gpusched.json.
#include "support/arguments.hpp"
#include "support/documents.hpp"

#include <gpusched/json/document.hpp>

namespace gpusched::python {

namespace {

JsonObject read_mapping(const PathLike& source) {
    const auto path = path_text(source);
    Problems problems;
    const auto document = unlocked([&] { return json::Document::read(path, problems); });
    if (document[0].kind != json::Kind::object)
        problems.add(path + ": expected a mapping, found " + document.describe(0));
    problems.throw_if_any();
    return to_python(document);
}

}  // namespace

void bind_json(py::module_& m) {
    m.attr("deepest_nesting") = json::deepest_nesting;
    m.def(
        "json_text",
        [](const Typed<"Any">& document, const std::string& source) {
            return json_text(to_document(document, source));
        },
        py::arg("document"), py::arg("source"),
        documented(
            "Returns a document of dicts, lists, numbers and text as JSON on one line. Raises "
            "InvalidInput with the position of everything that has no JSON form. `source`: the document's "
            "name in messages."));
    m.def("read_mapping", read_mapping, py::arg("path"),
          documented(
              "Reads a mapping from a file: YAML if the name ends in .yaml or .yml, otherwise JSON. Raises "
              "InvalidInput, with file and line or pointer, for other texts, duplicate keys and nesting "
              "deeper than 64 levels; BackendError if the file cannot be read."));
}

}  // namespace gpusched::python
