// SPDX-License-Identifier: Apache-2.0
// Converts between JSON documents and Python objects, and reads paths. The library's readers read all dicts of callers and all
// files of the console script.
#include "support/documents.hpp"
#include "support/arguments.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/json/document.hpp>
#include <gpusched/json/writer.hpp>

#include <cmath>

namespace gpusched::python {

/// `deepest_nesting` limits the recursion.
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

std::string type_name(py::handle value) {
    const auto type = py::type::handle_of(value);
    const auto module = py::str(type.attr("__module__")).cast<std::string>();
    return (module == "builtins" ? "" : module + ".") +
           py::str(type.attr("__qualname__")).cast<std::string>();
}

/// The text of a string; none if it has no UTF-8 form.
std::optional<std::string_view> utf8(py::handle string) {
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(string.ptr(), &size);
    if (text == nullptr) {
        PyErr_Clear();
        return std::nullopt;
    }
    return std::string_view(text, static_cast<std::size_t>(size));
}

/// Adds Python objects to a document. An object without a JSON form is reported and replaced by null.
class Encoder {
  public:
    Encoder(json::Document& document, Problems& problems) : builder_{document}, problems_(problems) {}

    void add(py::handle value) {
        take(2);  // at least a digit or a bracket, and a separator
        if (value.is_none()) return builder_.add_null();
        if (PyBool_Check(value.ptr())) return builder_.add_boolean(value.ptr() == Py_True);
        if (PyUnicode_Check(value.ptr())) return add_string(value);
        if (PyLong_Check(value.ptr())) return add_integer(value);
        if (PyFloat_Check(value.ptr())) return add_real(PyFloat_AS_DOUBLE(value.ptr()));
        if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) return add_sequence(value);
        if (is_mapping(value)) return add_mapping(value);
        if (is_sequence(value)) return add_sequence(value);
        // Numbers and arrays of numpy, and similar objects.
        if (py::hasattr(value, "tolist")) {
            const py::object plain = value.attr("tolist")();
            if (is_plain(plain)) return add(plain);
            if (!py::type::handle_of(plain).is(py::type::handle_of(value))) return refuse_type(plain);
        }
        if (PyIndex_Check(value.ptr())) {
            const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
            if (number) return add_integer(number);
            clear_conversion_error();
        } else if (py::hasattr(value, "__float__")) {
            const double number = PyFloat_AsDouble(value.ptr());
            if (PyErr_Occurred() == nullptr) return add_real(number);
            clear_conversion_error();
        }
        refuse_type(value);
    }

  private:
    static bool is_sequence(py::handle value) {
        if (PyBytes_Check(value.ptr()) || PyByteArray_Check(value.ptr()) || PyMemoryView_Check(value.ptr()))
            return false;
        return py::isinstance(value, py::module_::import("collections.abc").attr("Sequence"));
    }

    static bool is_plain(py::handle value) {
        return PyList_Check(value.ptr()) || PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr()) ||
               PyUnicode_Check(value.ptr());
    }

    void add_string(py::handle value) {
        const auto text = utf8(value);
        if (!text) return refuse(repr_text(value) + "; expected text, found half of a surrogate pair");
        take(text->size());
        builder_.add_string(*text);
    }
    /// Integers beyond 64 bits are real numbers, as in JSON texts.
    void add_integer(py::handle value) {
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
        if (overflow == 0) return builder_.add_integer(number);
        const double real = PyLong_AsDouble(value.ptr());
        if (PyErr_Occurred() == nullptr) return builder_.add_real(real);
        PyErr_Clear();
        refuse("an integer of " + py::str(value.attr("bit_length")()).cast<std::string>() +
               " bits; expected at most 1024");
    }
    void add_real(double value) {
        if (!std::isfinite(value)) return refuse(number_text(value) + "; expected a finite number");
        builder_.add_real(value);
    }
    void add_mapping(py::handle value) {
        if (!begin(json::Kind::object)) return;
        const auto object = builder_.last();
        for (const auto item : py::reinterpret_steal<py::object>(items_of(value))) {
            if (!PyTuple_Check(item.ptr()) || PyTuple_GET_SIZE(item.ptr()) != 2) {
                problems_.add(builder_.document.where(object) + "item " + repr_text(item) +
                              "; expected a tuple of a key and its value");
                break;
            }
            const auto pair = py::reinterpret_borrow<py::tuple>(item);
            const py::handle key = pair[0];
            const auto text = PyUnicode_Check(key.ptr()) ? utf8(key) : std::nullopt;
            if (!text)
                problems_.add(
                    builder_.document.where(object) + "key " + repr_text(key) + "; expected " +
                    (PyUnicode_Check(key.ptr()) ? "text, found half of a surrogate pair" : "a string"));
            take(text ? text->size() : 0);
            builder_.set_key(text ? *text : std::string_view(repr_text(key)));
            add(pair[1]);
            if (problems_.full()) break;
        }
        builder_.end();
    }
    /// A list of the items of a mapping. Code that runs during the conversion cannot change it.
    static PyObject* items_of(py::handle value) {
        PyObject* const items = PyMapping_Items(value.ptr());
        if (items == nullptr) throw py::error_already_set();
        return items;
    }
    void add_sequence(py::handle value) {
        if (!begin(json::Kind::array)) return;
        for (const auto item : value) {
            add(item);
            if (problems_.full()) break;
        }
        builder_.end();
    }
    /// @return false, with a problem, if the value is nested too deeply
    bool begin(json::Kind kind) {
        if (builder_.begin(kind)) return true;
        refuse("nested deeper than " + std::to_string(json::deepest_nesting) + " levels");
        return false;
    }
    void refuse(const std::string& what) {
        builder_.add_null();
        problems_.add(builder_.document.where(builder_.last()) + what);
    }
    void refuse_type(py::handle value) {
        refuse(repr_text(value) + " of type " + type_name(value) + "; expected " +
               (PyAnySet_Check(value.ptr()) ? "a list"
                                            : "None, a bool, an int, a float, a string, a list or a dict"));
    }
    /// Counts the minimal size of the JSON text. Throws InvalidInput if it exceeds the limit.
    void take(std::size_t bytes) {
        if (bytes > bytes_left_)
            throw InvalidInput(builder_.document.where(0) + "expected at most " +
                               std::to_string(largest_document) + " bytes as JSON");
        bytes_left_ -= bytes;
    }

    json::DocumentBuilder builder_;
    Problems& problems_;
    std::size_t bytes_left_ = largest_document;
};

}  // namespace

bool is_mapping(py::handle value) {
    return PyDict_Check(value.ptr()) ||
           py::isinstance(value, py::module_::import("collections.abc").attr("Mapping"));
}

void require_list(const char* argument, py::handle value, const char* expected) {
    if (py::isinstance<py::str>(value) || is_mapping(value) || !py::isinstance<py::iterable>(value))
        bad_type(argument, value, expected);
}

bool is_path(const py::object& source) {
    return py::isinstance<py::str>(source) || py::hasattr(source, "__fspath__");
}

std::string path_text(const py::object& source, const char* argument, const char* expected) {
    if (!is_path(source) && !py::isinstance<py::bytes>(source)) bad_type(argument, source, expected);
    std::string path;
    try {
        path = py::module_::import("os").attr("fsencode")(source).cast<std::string>();
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_UnicodeEncodeError)) throw;
        bad_option(argument, source, "text, found half of a surrogate pair");
    }
    // The system reads a path up to the first NUL, which would name another file.
    if (path.find('\0') != path.npos) bad_option(argument, source, "no NUL character");
    return path;
}

json::Document to_document(py::handle value, std::string source) {
    auto document = json::DocumentBuilder::start(std::move(source));
    Problems problems;
    Encoder(document, problems).add(value);
    problems.throw_if_any();
    return document;
}

namespace {

void write(json::Writer& writer, const json::Document& document, std::uint32_t at) {
    const auto& value = document[at];
    const bool object = value.kind == json::Kind::object;
    switch (value.kind) {
    case json::Kind::null:
        return writer.write_null();
    case json::Kind::boolean:
        return writer.write(value.integer != 0);
    case json::Kind::integer:
        return writer.write(value.integer);
    case json::Kind::real:
        return writer.write(value.real);
    case json::Kind::string:
        return writer.write(document.string(value));
    case json::Kind::array:
    case json::Kind::object:
        break;
    }
    writer.begin(object ? '{' : '[');
    for (auto child = at + 1; child < value.end; child = document[child].end) {
        if (object)
            writer.write_name(document.key(document[child]));
        else
            writer.next();
        write(writer, document, child);
    }
    writer.end(object ? '}' : ']');
}

}  // namespace

std::string json_text(const json::Document& document) {
    std::string text;
    json::Writer writer(text);
    write(writer, document, 0);
    return text;
}

}  // namespace gpusched::python
