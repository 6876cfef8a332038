// JSON documents as Python objects, and Python objects as JSON documents.
#pragma once

#include "support/bindings.hpp"

#include <gpusched/json/reader.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace gpusched::python {

/// A value of a document.
py::object to_python(const json::Document& document, std::uint32_t at = 0);

/// A document that the library wrote.
py::object parsed(std::string_view text);

/// The inverse: a Python object as a document. Mappings are objects, sequences and arrays of numpy are arrays, numbers of numpy
/// are numbers.
/// @param source how messages call it
/// @throws InvalidInput with the place of every key and value that has no JSON form
json::Document to_document(py::handle value, std::string source);

/// A document as JSON text, on one line.
std::string json_text(const json::Document& document);

/// Whether a Python object is an object of a document.
bool is_mapping(py::handle value);

/// Checks that an argument is a list, or another object whose items can be read one after the other.
/// @param expected how the message ends
/// @throws InvalidType for text, mappings and objects without items
void require_list(const char* argument, py::handle value, const char* expected);

/// What a Python object says, read as a document is, by the table of fields.
/// @param out its defaults
/// @throws InvalidInput with everything that is wrong, each problem with its place
template <class T>
T from_python(const std::string& source, py::handle value, T out = {}, json::Surroundings surroundings = {}) {
    constexpr int newest = std::numeric_limits<int>::max();  // what has no format has no versions
    const auto document = to_document(value, source);
    Problems problems;
    json::Reader(document, problems, newest, surroundings).read(0, out);
    problems.throw_if_any();
    return out;
}

/// A struct whose values stand in a row: an array of them, in the order of its table. A base of its `json::Form`.
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
