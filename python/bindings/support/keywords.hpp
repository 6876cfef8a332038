// SPDX-License-Identifier: Apache-2.0
// Keywords: the keyword-only parameters of Python functions, made from the tables of fields of C++ structs.
#pragma once

#include "support/option_types.hpp"

#include <gpusched/core/checks.hpp>

#include <cstdlib>
#include <initializer_list>

namespace gpusched::python {

namespace detail {

template <class T>
concept Literal = requires(const T& value) { OptionType<T>::literal(value); };

template <class T>
inline constexpr bool is_of_tasks = std::is_same_v<T, TaskId>;
template <class T>
inline constexpr bool is_of_tasks<std::optional<T>> = is_of_tasks<T>;
template <class T>
inline constexpr bool is_of_tasks<std::vector<T>> = is_of_tasks<T>;

/// The Python type of a field. Nodes and tasks can be given as objects.
template <class T>
std::string type_of() {
    auto type = OptionType<T>::type();
    if constexpr (names_of_cluster<T>) {
        constexpr std::string_view name = "str";
        type.insert(type.find(name) + name.size(), is_of_tasks<T> ? " | Task" : " | Node");
    }
    return type;
}

/// The range of a field from its table, such as "at least 1"; empty if it has none.
template <class... Rules>
std::string range_of(const Rules&... rules) {
    std::string text;
    [[maybe_unused]] const auto add = [&](const auto& rule) {
        if constexpr (gpusched::detail::RangeRule<std::remove_cvref_t<decltype(rule)>>)
            text = gpusched::detail::rule_text(rule);
    };
    (add(rules), ...);
    return text;
}

/// Whether a text contains a range: a number after one of the signs below.
inline bool contains_range(std::string_view text) {
    constexpr std::string_view digits = "0123456789";
    for (const std::string_view sign : {" .. ", ">= ", "> ", " to ", "at least ", "above "})
        for (auto at = text.find(sign); at != text.npos; at = text.find(sign, at + 1)) {
            auto number = text.substr(at + sign.size());
            if (number.starts_with('-')) number.remove_prefix(1);
            if (!number.empty() && digits.find(number.front()) != digits.npos) return true;
        }
    return false;
}

/// A keyword's documentation with its range, unless the text contains one: such as "Most rounds; at least 1."
inline std::string with_range(std::string text, const std::string& range) {
    if (range.empty() || contains_range(text)) return text;
    const bool sentence = text.ends_with('.');
    if (sentence) text.pop_back();
    return text + (text.empty() ? "" : "; ") + range + (sentence ? "." : "");
}

/// Adds the names of the fields of a struct; nothing for other types.
template <class T>
void add_field_names(std::vector<std::string_view>& names) {
    if constexpr (requires(const T& value) { value.has_value(); }) {
        add_field_names<typename T::value_type>(names);
    } else if constexpr (Described<T>) {
        visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
            if constexpr (gpusched::detail::has_mark<Inlined, decltype(rules)...>)
                add_field_names<std::remove_cvref_t<decltype(std::declval<T&>().*member)>>(names);
            else
                names.emplace_back(name);
        });
    }
}

}  // namespace detail

/// One keyword of a Python function, for its signature, documentation, stub and console option.
struct Keyword {
    std::string name, type, literal, text, range{};
    std::vector<std::string_view> fields{};  ///< fields of a dict
};

/// The keywords of every function, by its Python name, such as `consolidation.consolidate`.
inline std::map<std::string, std::vector<Keyword>>& all_keywords() {
    static std::map<std::string, std::vector<Keyword>> all;
    return all;
}

/// The same for Python: a dict of lists of dicts.
inline py::dict keywords_by_function() {
    py::dict functions;
    for (const auto& [function, keywords] : all_keywords()) {
        py::list list;
        for (const auto& k : keywords)
            list.append(py::dict(py::arg("name") = k.name, py::arg("type") = k.type,
                                 py::arg("default") = k.literal, py::arg("text") = k.text,
                                 py::arg("range") = k.range));
        functions[function.c_str()] = list;
    }
    return functions;
}

/// Whether signatures contain types, for the program that writes the stubs.
inline bool typed_signatures() {
    static const bool typed = std::getenv("GPUSCHED_TYPED_SIGNATURES") != nullptr;
    return typed;
}

/// The keyword-only parameters of one Python function: fields of `O`, read into an `O`.
///
///     Keywords<fragmentation::FgdOptions>().fields().def(
///         m, "fgd", [](const fragmentation::FgdOptions& options, const ClusterPtr& cluster, ...) { ... },
///         doc("fragmentation::fgd"), py::arg("cluster"), py::arg("workload"));
template <class O>
class Keywords {
  public:
    Keywords() = default;
    explicit Keywords(O defaults) : defaults_(std::move(defaults)) {}

    /// Adds the fields of the table of `O` or of a base, in its order, except keywords that already exist.
    /// @param names only these fields; empty = all
    template <Described Base = O>
    Keywords& fields(std::initializer_list<std::string_view> names = {}) {
        add_fields<Base>([](auto& options) -> auto& { return options; }, names);
        return *this;
    }

    /// Removes keywords that a function does not have.
    Keywords& without(std::initializer_list<std::string_view> names) {
        for (const auto name : names)
            if (const auto* found = find(name)) {
                const auto at = found - keywords_.data();
                keywords_.erase(keywords_.begin() + at);
                setters_.erase(setters_.begin() + at);
            }
        return *this;
    }

    /// Adds one field. Unless `text` is given, its documentation is that of the member with the keyword's name.
    template <class T, class Base>
    Keywords& field(const char* name, T Base::*member, std::string text = {}) {
        return add<T>(
            name, [member](auto& options) -> auto& { return options.*member; },
            text.empty() ? doc(member, name) : std::move(text));
    }

    /// Adds a keyword for a dict of other keywords, which can still be given directly, but not both ways.
    /// @param members names of keywords that exist
    Keywords& group(const char* name, std::string text, std::initializer_list<std::string_view> members) {
        text += " Keys:";
        for (const auto member : members)
            text += (member == *members.begin() ? " " : ", ") + std::string(member);
        keywords_.push_back({name, "Mapping[str, Any] | None", "None", text + "."});
        keywords_.back().fields = members;
        setters_.push_back({});
        return *this;
    }

    /// @throws InvalidInput for bad values, all at once; TypeError for unknown keywords
    [[nodiscard]] O read(const char* function, const py::kwargs& given,
                         const Cluster* cluster = nullptr) const {
        Problems problems;
        auto result = read(function, given, problems, cluster);
        problems.throw_if_any();
        return result;
    }
    /// The same for callers that collect more problems. Options with bad values keep their defaults.
    [[nodiscard]] O read(const char* function, const py::kwargs& given, Problems& problems,
                         const Cluster* cluster = nullptr) const {
        auto result = defaults_;
        for (const auto& [key, value] : given) {
            const auto name = OptionType<std::string>::read("keyword", key);
            const auto* found = find(name);
            if (found == nullptr)
                throw py::type_error(std::string(function) + "() got an unexpected keyword argument '" +
                                     name + "'" + instead_of(name));
            const auto& set = setters_[static_cast<std::size_t>(found - keywords_.data())];
            collect(problems, [&, v = value] {
                if (set)
                    set(result, v, cluster);
                else
                    read_group(*found, v, given, problems, result, cluster);
            });
        }
        return result;
    }

    /// The docstring of a function with these keywords.
    [[nodiscard]] Docstring documented(std::string text, std::string rest = {}) const {
        Docstring result{std::move(text), std::move(rest)};
        result.text += "\n\nOptions\n-------";
        for (const auto& k : keywords_) {
            result.keywords += (result.keywords.empty() ? "" : ", ") + k.name +
                               (typed_signatures() ? ": " + k.type + " = " : "=") + k.literal;
            result.text += "\n" + k.name + "\n    ";
            for (const char c : k.text) result.text += c == '\n' ? std::string("\n    ") : std::string(1, c);
        }
        return result;
    }

    /// Adds a function or a method with these keywords.
    /// @param function a lambda with an `O` as first parameter, followed by the positional parameters
    template <class Scope, class Function, class... Extra>
    void def(Scope& scope, const char* name, Function function, std::string text,
             const Extra&... extra) const {
        define(scope, name, std::move(function),
               std::add_pointer_t<py::detail::function_signature_t<Function>>{}, extra...,
               documented(std::move(text)));
    }

    /// Adds a constructor with these keywords to the class of `O`.
    void def_init(py::class_<O>& type) const {
        const auto name = type.attr("__name__").template cast<std::string>();
        type.def(py::init([keywords = *this, name](const py::kwargs& given) {
                     return keywords.read(name.c_str(), given);
                 }),
                 documented(doc(detail::documented_name<O>())));
    }

    /// Publishes these keywords for the console script under the function's Python name, such as
    /// `fragmentation.report`.
    const Keywords& shared_as(const char* function) const {
        all_keywords()[function] = keywords_;
        return *this;
    }

  private:
    template <class Scope, class Function, class Result, class Options, class... Arguments, class... Extra>
    void define(Scope& scope, const char* name, Function function, Result (*)(Options, Arguments...),
                const Extra&... extra) const {
        scope.def(
            name,
            [keywords = *this, name, function](Arguments... arguments, const py::kwargs& given) -> Result {
                return function(keywords.read(name, given, cluster_of(arguments...)),
                                std::forward<Arguments>(arguments)...);
            },
            extra...);
    }

    /// The cluster of a call, if it is the first argument.
    template <class First, class... Rest>
    static const Cluster* cluster_of(const First& first, const Rest&...) {
        if constexpr (std::is_same_v<First, std::shared_ptr<Cluster>>) return first.get();
        return nullptr;
    }
    static const Cluster* cluster_of() { return nullptr; }

    /// Adds the fields of a struct. `of` returns the struct of an `O`.
    template <class Struct, class Of>
    void add_fields(Of of, std::initializer_list<std::string_view> names) {
        visit_fields(std::type_identity<Struct>{}, [&](const char* name, auto member, const auto&... rules) {
            const auto inner = [of, member](auto& options) -> auto& { return of(options).*member; };
            using T = std::remove_cvref_t<decltype(inner(defaults_))>;
            if constexpr (gpusched::detail::has_mark<Inlined, decltype(rules)...>)
                add_fields<T>(inner, names);
            else if (is_wanted(name, names))
                add<T>(name, inner, doc(member, name), rules...);
        });
    }

    void read_group(const Keyword& group, py::handle value, const py::kwargs& given, Problems& problems,
                    O& result, const Cluster* cluster) const {
        if (value.is_none()) return;
        if (!py::hasattr(value, "keys")) bad_option(group.name, value, "a dict");
        for (const auto& [key, member] : py::dict(py::reinterpret_borrow<py::object>(value))) {
            const auto name = OptionType<std::string>::read(group.name + "'s key", key);
            if (std::find(group.fields.begin(), group.fields.end(), name) == group.fields.end())
                problems.add(bad_key(group.name, name, group.fields));
            else if (given.contains(name.c_str()))
                problems.add(name + ": given twice, also in " + group.name + "; expected one of them");
            else
                collect(problems, [&, v = member] {
                    setters_[static_cast<std::size_t>(find(name) - keywords_.data())](result, v, cluster);
                });
        }
    }

    /// @param of returns the value of an `O`
    template <class T, class Of, class... Rules>
    Keywords& add(const char* name, Of of, std::string text, const Rules&... rules) {
        constexpr bool is_level = gpusched::detail::has_mark<IsLevel, Rules...>;
        std::string type = is_level ? "int | Literal['node'] | None" : detail::type_of<T>();
        if (is_level) text += "; \"node\" = each node separately";
        std::string literal = "None";
        if constexpr (detail::Literal<T>) literal = OptionType<T>::literal(of(defaults_));
        auto range = detail::range_of(rules...);
        text = detail::with_range(std::move(text), range);
        keywords_.push_back({name, std::move(type), std::move(literal), std::move(text), std::move(range)});
        detail::add_field_names<T>(keywords_.back().fields);
        setters_.push_back([name, of, rules...](O& options, py::handle value, const Cluster* cluster) {
            if constexpr (is_level)
                of(options) = read_optional_level(name, value);
            else if constexpr (detail::names_of_cluster<T>)
                of(options) = OptionType<T>::read(name, names_of(value), *cluster);
            else
                of(options) = detail::read_field<T>(name, value, rules...);
        });
        return *this;
    }

    /// Is the field not a keyword yet, and among the names (all, if there are none)?
    bool is_wanted(std::string_view name, std::initializer_list<std::string_view> names) const {
        return find(name) == nullptr &&
               (names.size() == 0 || std::find(names.begin(), names.end(), name) != names.end());
    }

    /// A hint for an unknown keyword: the keyword with a field of this name, or the nearest names.
    [[nodiscard]] std::string instead_of(std::string_view name) const {
        std::vector<std::string_view> names;
        for (const auto& k : keywords_) {
            if (std::find(k.fields.begin(), k.fields.end(), name) != k.fields.end())
                return "; it is a field of '" + k.name + "'";
            names.emplace_back(k.name);
        }
        return did_you_mean(name, names);
    }
    const Keyword* find(std::string_view name) const {
        for (const auto& k : keywords_)
            if (name == k.name) return &k;
        return nullptr;
    }

    O defaults_{};
    std::vector<Keyword> keywords_;
    std::vector<std::function<void(O&, py::handle, const Cluster*)>> setters_;
};

}  // namespace gpusched::python
