// JSON documents for the package's own modules; users have no gpusched.json.
#include "support/arguments.hpp"
#include "support/documents.hpp"
#include "support/sources.hpp"

#include <gpusched/json/document.hpp>

#include <string>

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
            "json_text(document, source)",
            "A document of dicts, lists, numbers and text as JSON on one line. Raises InvalidInput with "
            "the place of everything that has no JSON form; `source` is what messages call the document.")
            .c_str());
    m.def(
        "read_mapping", read_mapping, py::arg("path"),
        documented(
            "read_mapping(path)",
            "The mapping in a file: YAML if its name ends in .yaml or .yml, else JSON. Raises "
            "InvalidInput, with the file and the line or pointer, for text that is neither, keys that occur "
            "twice and nesting deeper than 64 levels; BackendError for a file that cannot be read.")
            .c_str());
}

}  // namespace gpusched::python
