// SPDX-License-Identifier: Apache-2.0
// Option types: strict conversion of Python values, with errors that name the field.
#pragma once

#include "support/bindings.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/spec.hpp>

#include <array>
#include <concepts>
#include <limits>

namespace gpusched::python {

/// A value as it appears in messages.
inline std::string repr_text(py::handle value) {
    return py::module_::import("gpusched.errors").attr("repr_text")(value).cast<std::string>();
}

/// Throws InvalidInput for a bad value of an option.
[[noreturn]] inline void bad_option(const std::string& field, py::handle value,
                                    const std::string& expectation) {
    throw InvalidInput(bad_value(field, repr_text(value), expectation));
}

/// An argument of a wrong type: `InvalidType` in Python.
class InvalidType : public InvalidInput {
  public:
    using InvalidInput::InvalidInput;
};

/// Throws InvalidType for an argument of a wrong type.
[[noreturn]] inline void bad_type(const std::string& field, py::handle value,
                                  const std::string& expectation) {
    throw InvalidType(bad_value(field, repr_text(value), expectation));
}

/// Clears Python's error after a failed conversion to a number.
/// @throws py::error_already_set for errors of another kind
inline void clear_conversion_error() {
    for (auto* const kind : {PyExc_TypeError, PyExc_ValueError, PyExc_OverflowError})
        if (PyErr_ExceptionMatches(kind) != 0) return PyErr_Clear();
    throw py::error_already_set();
}

/// The message for an unknown key of a dict.
/// @param known the allowed keys
template <class Names>
std::string bad_key(const std::string& owner, std::string_view key, const Names& known) {
    std::string expected;
    for (std::size_t i = 0; i < known.size(); ++i) expected.append(i == 0 ? "" : ", ").append(known[i]);
    return owner + ": unknown field " + gpusched::quoted(key) + "; expected " + expected +
           did_you_mean(key, known);
}

/// Reads an option's value from Python, and writes its default as a Python literal. Reading is strict: no
/// bool for an integer, no rounding, no overflow. Bad values are an `InvalidInput` that names the field.
///
/// Used for single arguments. Unlike documents, they may be numbers that are not finite, functions, objects
/// of the package, and names that need a cluster. Literals and types are used in signatures and stubs.
/// `from_python` reads dicts.
template <class T>
struct OptionType;

template <>
struct OptionType<bool> {
    static bool read(const std::string& field, py::handle value) {
        if (value.is(py::bool_(true))) return true;
        if (value.is(py::bool_(false))) return false;
        if (py::isinstance(value, py::module_::import("numpy").attr("bool_"))) return value.cast<bool>();
        bad_option(field, value, "True or False");
    }
    static std::string literal(bool value) { return value ? "True" : "False"; }
    static std::string type() { return "bool"; }
};

template <std::integral T>
struct OptionType<T> {
    /// @param range allowed values, for messages; the library checks values of `T` outside of it
    static T read(const std::string& field, py::handle value, const Within<T>& range = range_of<T>()) {
        const auto expectation = [&] {
            return std::to_string(range.low) + " to " + std::to_string(range.high);
        };
        if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr()))
            bad_option(field, value, "an integer from " + expectation());
        const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
        if (!number) {  // such as an array of several numbers
            clear_conversion_error();
            bad_type(field, value, "an integer from " + expectation());
        }
        int overflow = 0;
        const long long small = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
        if (overflow == 0) {
            if (!std::in_range<T>(small)) bad_option(field, value, expectation());
            return static_cast<T>(small);
        }
        const auto large = PyLong_AsUnsignedLongLong(number.ptr());
        if (PyErr_Occurred() != nullptr) {
            PyErr_Clear();
            bad_option(field, value, expectation());
        }
        if (!std::in_range<T>(large)) bad_option(field, value, expectation());
        return static_cast<T>(large);
    }
    static std::string literal(T value) { return std::to_string(value); }
    static std::string type() { return "int"; }
};

/// An integer from `low` to `high`; the error names both.
template <std::integral T>
T read_within(const std::string& field, py::handle value, T low, T high) {
    try {
        if (const auto number = OptionType<T>::read(field, value); number >= low && number <= high)
            return number;
    } catch (const InvalidInput&) {  // the message below names the range of the option, not of the type
    }
    bad_option(field, value, "an integer from " + std::to_string(low) + " to " + std::to_string(high));
}

template <>
struct OptionType<double> {
    static double read(const std::string& field, py::handle value) {
        const bool number =
            PyFloat_Check(value.ptr()) || PyIndex_Check(value.ptr()) || py::hasattr(value, "__float__");
        if (PyBool_Check(value.ptr()) || !number) bad_option(field, value, "a number");
        const double result = PyFloat_AsDouble(value.ptr());
        if (PyErr_Occurred() != nullptr) {
            const bool large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
            clear_conversion_error();
            if (large) bad_option(field, value, "a number up to 1.8e308");
            bad_type(field, value, "a number");  // such as an array of several, or a time
        }
        return result;
    }
    static std::string literal(double value) { return py::repr(py::float_(value)).cast<std::string>(); }
    static std::string type() { return "float"; }
};

template <>
struct OptionType<std::string> {
    static std::string read(const std::string& field, py::handle value) {
        if (!py::isinstance<py::str>(value)) bad_option(field, value, "a string");
        try {
            return value.cast<std::string>();
        } catch (const py::cast_error&) {
            bad_option(field, value, "text, found half of a surrogate pair");
        }
    }
    static std::string literal(const std::string& value) {
        return py::repr(py::str(value)).cast<std::string>();
    }
    static std::string type() { return "str"; }
};

template <>
struct OptionType<py::object> {
    static py::object read(const std::string&, py::handle value) {
        return py::reinterpret_borrow<py::object>(value);
    }
    static std::string literal(const py::object& value) {
        return value ? py::repr(value).cast<std::string>() : std::string("None");
    }
    static std::string type() { return "Any"; }
};

/// Enumerators, by name.
template <NamedEnum E>
struct OptionType<E> {
    static E read(const std::string& field, py::handle value) {
        const auto text =
            py::isinstance<py::str>(value) ? OptionType<std::string>::read(field, value) : std::string();
        std::string expectation;
        std::vector<std::string_view> names;
        for (const auto& [enumerator, name] : enumerators<E>()) {
            if (text == name) return enumerator;
            names.emplace_back(name);
            expectation += (expectation.empty() ? "'" : ", '") + std::string(name) + "'";
        }
        bad_option(field, value, "one of " + expectation + did_you_mean(text, names));
    }
    static std::string literal(E value) { return "'" + std::string(enum_name(value)) + "'"; }
    static std::string type() { return literal_type<E>.text; }
};

/// Nodes of the call's cluster, by name.
template <>
struct OptionType<NodeId> {
    static NodeId read(const std::string& field, py::handle value, const Cluster& cluster) {
        const auto name = OptionType<std::string>::read(field, value);
        try {
            return cluster.find_node(name);
        } catch (const InvalidInput& error) {
            throw InvalidInput(field + ": " + error.what());
        }
    }
    static std::string type() { return "str"; }
    static std::string literal(NodeId node) { return std::to_string(index(node)); }
};

/// Tasks by name, likewise.
template <>
struct OptionType<TaskId> {
    static TaskId read(const std::string& field, py::handle value, const Cluster& cluster) {
        const auto name = OptionType<std::string>::read(field, value);
        try {
            return cluster.find_task(name);
        } catch (const InvalidInput& error) {
            throw InvalidInput(field + ": " + error.what());
        }
    }
    static std::string type() { return "str"; }
    static std::string literal(TaskId task) { return std::to_string(index(task)); }
};

template <class T>
struct OptionType<std::optional<T>> {
    static std::optional<T> read(const std::string& field, py::handle value, const auto&... of) {
        if (value.is_none()) return std::nullopt;
        return OptionType<T>::read(field, value, of...);
    }
    static std::string literal(const std::optional<T>& value) {
        return value ? OptionType<T>::literal(*value) : std::string("None");
    }
    static std::string type() {
        const auto of = OptionType<T>::type();
        return of.ends_with(" | None") ? of : of + " | None";
    }
};

template <class T>
struct OptionType<std::vector<T>> {
    static std::vector<T> read(const std::string& field, py::handle value, const auto&... of) {
        if (py::isinstance<py::str>(value) || !py::isinstance<py::iterable>(value))
            bad_option(field, value, "a list");
        std::vector<T> result;
        Problems problems;
        std::size_t i = 0;
        for (const auto item : value) {
            const auto place = std::is_same_v<T, NodeId> || std::is_same_v<T, TaskId>
                                   ? field
                                   : field + "[" + std::to_string(i++) + "]";
            collect(problems, [&] { result.push_back(OptionType<T>::read(place, item, of...)); });
        }
        problems.throw_if_any();
        return result;
    }
    static std::string literal(const std::vector<T>& value) {
        std::string text;
        for (const auto& item : value) text += (text.empty() ? "" : ", ") + OptionType<T>::literal(item);
        return "[" + text + "]";
    }
    static std::string type() { return "Sequence[" + OptionType<T>::type() + "]"; }
};

template <class T, std::size_t n>
struct OptionType<std::array<T, n>> {
    static std::array<T, n> read(const std::string& field, py::handle value) {
        const auto list = OptionType<std::vector<T>>::read(field, value);
        if (list.size() != n) bad_option(field, value, "a list of " + std::to_string(n));
        std::array<T, n> result;
        std::copy(list.begin(), list.end(), result.begin());
        return result;
    }
    static std::string literal(const std::array<T, n>& value) {
        return OptionType<std::vector<T>>::literal({value.begin(), value.end()});
    }
    static std::string type() { return OptionType<std::vector<T>>::type(); }
};

/// The value with `Node` and `Task` objects replaced by their names, also in lists and other iterables, which
/// become lists. A name means the same in every cluster that contains it.
py::object names_of(py::handle value);

/// A level as in the formats: "node" or the 0-based index into a node's network path.
inline Level read_level(const std::string& field, py::handle value) {
    constexpr const char* expected = "'node' or an index >= 0 into the nodes' network";
    if (py::isinstance<py::str>(value)) {
        if (OptionType<std::string>::read(field, value) == "node") return node_level;
        bad_option(field, value, expected);
    }
    const auto level = OptionType<Level>::read(field, value);
    if (level < 0) bad_option(field, value, expected);
    return level;
}
inline std::optional<Level> read_optional_level(const std::string& field, py::handle value) {
    if (value.is_none()) return std::nullopt;
    return read_level(field, value);
}

namespace detail {

/// Reads a field of a table. Messages about wrong integers name the range of the field.
template <class T, class... Rules>
T read_field(const std::string& field, py::handle value, const Rules&... rules) {
    if constexpr (std::integral<T> && !std::is_same_v<T, bool>)
        return OptionType<T>::read(field, value, range_of<T>(rules...));
    else if constexpr (requires { requires std::is_same_v<T, std::optional<typename T::value_type>>; })
        return value.is_none() ? T() : T(read_field<typename T::value_type>(field, value, rules...));
    else
        return OptionType<T>::read(field, value);
}

/// Whether a type stands for names that need a cluster.
template <class T>
inline constexpr bool names_of_cluster = std::is_same_v<T, NodeId> || std::is_same_v<T, TaskId>;
template <class T>
inline constexpr bool names_of_cluster<std::optional<T>> = names_of_cluster<T>;
template <class T>
inline constexpr bool names_of_cluster<std::vector<T>> = names_of_cluster<T>;

}  // namespace detail

}  // namespace gpusched::python
