// Keyword-only options: Python keywords that equal the fields of a C++ options struct, with its defaults and docs.
#pragma once

#include "bindings.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/model/spec.hpp>

#include <concepts>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::python {

/// A value as it appears in messages.
inline std::string repr_text(py::handle value) {
    return py::module_::import("gpusched.errors").attr("repr_text")(value).cast<std::string>();
}

/// Says what is wrong with the value of an option.
[[noreturn]] inline void bad_option(const std::string& field, py::handle value,
                                    const std::string& expectation) {
    throw InvalidInput(bad_value(field, repr_text(value), expectation));
}

/// Adds what `check()` finds wrong to what was found before, so that a caller sees all of it at once.
template <class F>
void collect(Problems& problems, F&& check) {
    try {
        std::forward<F>(check)();
    } catch (const InvalidInput& error) {
        for (const auto& problem : error.problems()) problems.add(problem);
    }
}

/// Reads an option's value from Python and writes its default as a Python literal. Strict: no bool for an integer,
/// no rounding, no wrap-around; whatever does not fit is an `InvalidInput` that names the field.
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
    static T read(const std::string& field, py::handle value) {
        constexpr auto low = std::numeric_limits<T>::min();
        constexpr auto high = std::numeric_limits<T>::max();
        const auto expectation = [] {
            return "an integer from " + std::to_string(low) + " to " + std::to_string(high);
        };
        if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) bad_option(field, value, expectation());
        const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
        if (!number) throw py::error_already_set();
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

template <>
struct OptionType<double> {
    static double read(const std::string& field, py::handle value) {
        const bool number =
            PyFloat_Check(value.ptr()) || PyIndex_Check(value.ptr()) || py::hasattr(value, "__float__");
        if (PyBool_Check(value.ptr()) || !number) bad_option(field, value, "a number");
        const double result = PyFloat_AsDouble(value.ptr());
        if (PyErr_Occurred() != nullptr) {
            if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) throw py::error_already_set();
            PyErr_Clear();
            bad_option(field, value, "a number up to 1.8e308");
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

/// By the names beside the enumeration.
template <NamedEnum E>
struct OptionType<E> {
    static E read(const std::string& field, py::handle value) {
        std::string expectation;
        for (const auto& [enumerator, name] : enum_names(E{})) {
            if (py::isinstance<py::str>(value) && OptionType<std::string>::read(field, value) == name)
                return enumerator;
            expectation += (expectation.empty() ? "'" : ", '") + std::string(name) + "'";
        }
        bad_option(field, value, "one of " + expectation);
    }
    static std::string literal(E value) { return "'" + std::string(enum_name(value)) + "'"; }
    static std::string type() {
        std::string names;
        for (const auto& [enumerator, name] : enum_names(E{}))
            names += (names.empty() ? "'" : ", '") + std::string(name) + "'";
        return "Literal[" + names + "]";
    }
};

/// The names of an enumeration, or of an optional one; none of another type.
template <class T>
struct NamesOf {
    static std::vector<std::string> list() { return {}; }
};
template <NamedEnum E>
struct NamesOf<E> {
    static std::vector<std::string> list() {
        std::vector<std::string> names;
        for (const auto& row : enum_names(E{})) names.emplace_back(row.name);
        return names;
    }
};
template <NamedEnum E>
struct NamesOf<std::optional<E>> : NamesOf<E> {};

/// The names that options have to choose from, by their C++ names: `consolidation::Options::preset`. For the console
/// script, which offers the same.
inline std::map<std::string, std::vector<std::string>>& option_choices() {
    static std::map<std::string, std::vector<std::string>> choices;
    return choices;
}

template <class T>
struct OptionType<std::optional<T>> {
    static std::optional<T> read(const std::string& field, py::handle value) {
        if (value.is_none()) return std::nullopt;
        return OptionType<T>::read(field, value);
    }
    static std::string literal(const std::optional<T>& value) {
        return value ? OptionType<T>::literal(*value) : std::string("None");
    }
    static std::string type() { return OptionType<T>::type() + " | None"; }
};

template <class T>
struct OptionType<std::vector<T>> {
    static std::vector<T> read(const std::string& field, py::handle value) {
        if (py::isinstance<py::str>(value) || !py::isinstance<py::iterable>(value))
            bad_option(field, value, "a list");
        std::vector<T> result;
        for (const auto item : value)
            result.push_back(OptionType<T>::read(field + "[" + std::to_string(result.size()) + "]", item));
        return result;
    }
    static std::string literal(const std::vector<T>& value) {
        std::string text;
        for (const auto& item : value) text += (text.empty() ? "" : ", ") + OptionType<T>::literal(item);
        return "[" + text + "]";
    }
    static std::string type() { return "Sequence[" + OptionType<T>::type() + "]"; }
};

/// A level as in the formats: "node" or the 0-based index into a node's network path.
inline Level read_level(const std::string& field, py::handle value) {
    constexpr const char* expected = "'node' or an index >= 0 into the nodes' network";
    if (py::isinstance<py::str>(value)) {
        if (value.cast<std::string>() == "node") return node_level;
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

/// Whether signatures carry types, for the program that writes the stubs.
inline bool typed_signatures() {
    static const bool wanted = std::getenv("GPUSCHED_TYPED_SIGNATURES") != nullptr;
    return wanted;
}

/// The keyword-only options of one Python function, as a table of fields of `O`.
///
///     static const Options<fragmentation::ReportOptions> options = Options<...>("fragmentation::ReportOptions")
///         .field("include_cordoned", &fragmentation::ReportOptions::include_cordoned) ...
///     m.def("report", [](..., const py::kwargs& keywords) { return report(..., options.read("report", keywords)); },
///           options.documented("report(cluster, shapes", doc("fragmentation::report")).c_str());
template <class O>
class Options {
  public:
    /// @param type the C++ name of `O`, under which its fields are documented
    explicit Options(std::string type, O defaults = {})
        : type_(std::move(type)), defaults_(std::move(defaults)) {}

    /// Adds a field. Its documentation comes from the header unless `text` is given.
    template <class T, class Base>
    Options& field(const char* name, T Base::*member, std::string text = {}, std::string type = {}) {
        if (text.empty()) text = doc(type_ + "::" + name);
        if (auto names = NamesOf<T>::list(); !names.empty())
            option_choices()[type_ + "::" + name] = std::move(names);
        if (type.empty()) type = OptionType<T>::type();
        fields_.push_back({name, std::move(type), OptionType<T>::literal(defaults_.*member), std::move(text),
                           [name, member](O& options, py::handle value) {
                               options.*member = OptionType<T>::read(name, value);
                           }});
        return *this;
    }

    /// Adds a level: None, "node" or an index.
    template <class Base>
    Options& level_field(const char* name, std::optional<Level> Base::*member) {
        fields_.push_back({name, "int | Literal['node'] | None", "None",
                           doc(type_ + "::" + name) + "; \"node\" = every node for itself",
                           [name, member](O& options, py::handle value) {
                               options.*member = read_optional_level(name, value);
                           }});
        return *this;
    }

    /// @throws InvalidInput for bad values, all at once; TypeError for unknown keywords
    [[nodiscard]] O read(const char* function, const py::kwargs& keywords) const {
        return read(function, keywords, defaults_);
    }
    [[nodiscard]] O read(const char* function, const py::kwargs& keywords, O result) const {
        Problems problems;
        result = read(function, keywords, problems, std::move(result));
        problems.throw_if_any();
        return result;
    }
    /// The same for callers that look for more problems: options with bad values keep their defaults.
    [[nodiscard]] O read(const char* function, const py::kwargs& keywords, Problems& problems) const {
        return read(function, keywords, problems, defaults_);
    }
    [[nodiscard]] O read(const char* function, const py::kwargs& keywords, Problems& problems,
                         O result) const {
        for (const auto& [key, value] : keywords) {
            const auto name = key.template cast<std::string>();
            const auto* found = find(name);
            if (found == nullptr)
                throw py::type_error(std::string(function) + "() got an unexpected keyword argument '" +
                                     name + "'");
            collect(problems, [&, v = value] { found->set(result, v); });
        }
        return result;
    }

    /// The docstring of a function with these options.
    /// @param head its name, opening bracket and positional parameters, such as `report(cluster, shapes`
    [[nodiscard]] std::string documented(std::string_view head, std::string_view text) const {
        std::string signature(head);
        if (!fields_.empty() && head.find('*') == head.npos) signature += head.ends_with('(') ? "*" : ", *";
        for (const auto& f : fields_)
            signature +=
                ", " + std::string(f.name) + (typed_signatures() ? ": " + f.type + " = " : "=") + f.literal;
        std::string body(text);
        body += "\n\nOptions\n-------";
        for (const auto& f : fields_) {
            body += std::string("\n") + f.name + "\n    ";
            for (const char c : f.text) body += c == '\n' ? std::string("\n    ") : std::string(1, c);
        }
        return python::documented(signature + ")", body);
    }

  private:
    struct Field {
        const char* name;
        std::string type, literal, text;
        std::function<void(O&, py::handle)> set;
    };
    const Field* find(const std::string& name) const {
        for (const auto& f : fields_)
            if (name == f.name) return &f;
        return nullptr;
    }
    std::string type_;
    O defaults_;
    std::vector<Field> fields_;
};

}  // namespace gpusched::python
