// SPDX-License-Identifier: Apache-2.0
// Converts between JSON documents and Python objects, and reads paths.
#pragma once

#include "support/bindings.hpp"

#include <gpusched/json/reader.hpp>

#include <limits>

namespace gpusched::python {

/// A value of a document as a Python object.
py::object to_python(const json::Document& document, std::uint32_t at = 0);

/// Parses a document that the library wrote.
py::object parsed(std::string_view text);

/// A Python object as a document. Mappings become objects; sequences and numpy arrays become arrays.
/// @param source name of the document in messages
/// @throws InvalidInput with the position of every key and value that has no JSON form
json::Document to_document(py::handle value, std::string source);

/// A document as JSON text, on one line.
std::string json_text(const json::Document& document);

/// True for a string or an object with `__fspath__`.
bool is_path(const py::object& source);

/// A path in the encoding of the file system.
/// @param argument name of the argument in messages
/// @param expected expectation in the message
/// @throws InvalidInput for other objects
std::string path_text(const py::object& source, const char* argument = "path",
                      const char* expected = "a path: a string or an os.PathLike");

/// Whether a Python object corresponds to a JSON object.
bool is_mapping(py::handle value);

/// Checks that an argument is a list or another iterable.
/// @param expected expectation in the message
/// @throws InvalidType for texts, mappings and other objects
void require_list(const char* argument, py::handle value, const char* expected);

/// Reads a Python object like a document, by the table of fields.
/// @param out default values
/// @throws InvalidInput with all problems and their positions
template <class T>
T from_python(const std::string& source, py::handle value, T out = {}, json::Surroundings surroundings = {}) {
    constexpr int newest = std::numeric_limits<int>::max();  // a value without a format has no version
    const auto document = to_document(value, source);
    Problems problems;
    json::Reader(document, problems, newest, surroundings).read(0, out);
    problems.throw_if_any();
    return out;
}

/// Reads a struct from an array of its values, in the order of its table. A base of its `json::Form`.
template <Described T>
struct RowForm {
    static void read(json::Reader& reader, std::uint32_t at, T& out) {
        std::string names;
        std::uint32_t count = 0;
        visit_fields(std::type_identity<T>{}, [&](const char* name, auto, const auto&...) {
            names += (count++ == 0 ? "" : ", ") + std::string(name);
        });
        const auto& document = reader.document();
        if (reader.kind(at) != json::Kind::array || document[at].size != count)
            return reader.expected(at, "a row of " + names);
        auto child = at + 1;
        visit_fields(std::type_identity<T>{}, [&](const char*, auto member, const auto&... rules) {
            reader.read_field(child, out.*member, rules...);
            child = document[child].end;
        });
    }
};

}  // namespace gpusched::python
