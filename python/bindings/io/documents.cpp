// Documents in JSON or YAML as Python objects: what the console script reads goes through the library's parsers.
#include "core/arguments.hpp"
#include "core/sources.hpp"
#include "model/plan.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/io/detail/json_document.hpp>

namespace gpusched::python {

namespace {

using io::detail::JsonDocument;
using io::detail::JsonKind;

/// Recursion is bounded by `JsonDocument::deepest`.
py::object to_python(const JsonDocument& document, std::uint32_t at) {
    const auto& value = document[at];
    switch (value.kind) {
    case JsonKind::null:
        return py::none();
    case JsonKind::boolean:
        return py::bool_(value.integer != 0);
    case JsonKind::integer:
        return py::int_(value.integer);
    case JsonKind::real:
        return py::float_(value.real);
    case JsonKind::string:
        return py::str(document.string(value));
    case JsonKind::array: {
        py::list list;
        for (auto child = at + 1; child < value.end; child = document[child].end)
            list.append(to_python(document, child));
        return list;
    }
    case JsonKind::object: {
        py::dict dict;
        for (auto child = at + 1; child < value.end; child = document[child].end)
            dict[py::str(document.key(document[child]))] = to_python(document, child);
        return dict;
    }
    }
    return py::none();
}

JsonObject read_mapping(const PathLike& source) {
    const auto path = path_text(source);
    Problems problems;
    const auto documents = unlocked([&] {
        const auto text = read_file(path);
        if (path.ends_with(".yaml") || path.ends_with(".yml"))
            return JsonDocument::parse_yaml(text, path, problems);
        std::vector<JsonDocument> one;
        one.push_back(JsonDocument::parse(text, path, problems));
        return one;
    });
    if (documents.size() != 1)
        problems.add(path + ": expected one document, found " + std::to_string(documents.size()));
    else if (documents[0][0].kind != JsonKind::object)
        problems.add(path + ": expected a mapping, found " + documents[0].describe(0));
    problems.throw_if_any();
    return to_python(documents[0], 0);
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
