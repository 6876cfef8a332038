// Documents in JSON or YAML as Python objects: what the console script reads goes through the library's parsers.
#include "json/documents.hpp"
#include "core/arguments.hpp"
#include "core/sources.hpp"

#include <gpusched/core/errors.hpp>

namespace gpusched::python {

/// Recursion is bounded by `deepest_nesting`.
py::object to_python(const json::Document& document, std::uint32_t at) {
    const auto& value = document[at];
    switch (value.kind) {
    case json::Kind::null:
        return py::none();
    case json::Kind::boolean:
        return py::bool_(value.integer != 0);
    case json::Kind::integer:
        return py::int_(value.integer);
    case json::Kind::real:
        return py::float_(value.real);
    case json::Kind::string:
        return py::str(document.string(value));
    case json::Kind::array: {
        py::list list;
        for (auto child = at + 1; child < value.end; child = document[child].end)
            list.append(to_python(document, child));
        return list;
    }
    case json::Kind::object: {
        py::dict dict;
        for (auto child = at + 1; child < value.end; child = document[child].end)
            dict[py::str(document.key(document[child]))] = to_python(document, child);
        return dict;
    }
    }
    return py::none();
}

py::object parsed(std::string_view text) {
    Problems problems;
    const auto document = json::Document::parse(text, "document", problems);
    problems.throw_if_any();
    return to_python(document);
}

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

void bind_documents(py::module_& m) {
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
