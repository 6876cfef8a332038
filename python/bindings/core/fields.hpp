// Dicts that stand for aggregates, read key by key.
#pragma once

#include "core/keywords.hpp"

#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace gpusched::python {

inline py::dict dict_of(const std::string& field, py::handle value) {
    if (!py::isinstance<py::dict>(value)) bad_option(field, value, "a dict");
    return py::reinterpret_borrow<py::dict>(value);
}

/// The fields of a table as a dict.
template <Described T>
py::dict dict_from(const T& object) {
    py::dict result;
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
        if constexpr (gpusched::detail::has_mark<Inlined, decltype(rules)...>)
            result.attr("update")(dict_from(object.*member));
        else
            result[name] = object.*member;
    });
    return result;
}

/// The fields of a table that say something, as a dict: absent ones are left out, and those that documents leave out while they
/// have their default values.
template <Described T>
py::dict stated_fields(const T& object) {
    py::dict result;
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
        const auto& value = object.*member;
        if constexpr (gpusched::detail::has_mark<UnlessDefault, decltype(rules)...>)
            if (value == T{}.*member) return;
        if constexpr (Described<std::remove_cvref_t<decltype(value)>>) {
            result[name] = stated_fields(value);
        } else if constexpr (requires { value.has_value(); }) {
            if (!value) return;
            if constexpr (Described<std::remove_cvref_t<decltype(*value)>>)
                result[name] = stated_fields(*value);
            else
                result[name] = *value;
        } else {
            result[name] = value;
        }
    });
    return result;
}

/// Keys of a dict one by one; those that nobody took are mistakes, unless they begin with x-. What is wrong is collected, and
/// thrown by `finish`.
class Fields {
  public:
    /// @param owner how messages begin
    Fields(std::string owner, py::handle value) : owner_(std::move(owner)), dict_(dict_of(owner_, value)) {}

    /// @param rules  those of the field, where it stands in a table
    template <class T, class... Rules>
    void read(const char* name, T& target, const Rules&... rules) {
        const auto value = take(name);
        if (!value) return;
        const auto before = problems_.count();
        collect([&] { target = detail::read_field<T>(owner_ + "." + name, value, rules...); });
        if (problems_.count() > before) bad_.insert(name);
    }
    template <class T, class... Rules>
    void require(const char* name, T& target, const Rules&... rules) {
        if (!dict_.contains(name)) {
            missing(name);
            return;
        }
        read(name, target, rules...);
    }
    void missing(const char* name) {
        taken_.insert(name);
        bad_.insert(name);
        problems_.add(owner_ + ": " + name + " is missing");
    }
    py::object take(const char* name) {
        taken_.insert(name);
        return dict_.contains(name) ? py::object(dict_[name]) : py::object();
    }
    /// Whether what a key holds, or should hold, is known to be wrong.
    [[nodiscard]] bool bad(const char* name) const { return bad_.contains(name); }
    /// Reads the fields of a table, each under its name.
    /// @param except names that are read otherwise, or not at all
    template <Described T>
    void read_all(T& target, std::initializer_list<std::string_view> except = {}) {
        visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
            if (std::find(except.begin(), except.end(), name) != except.end()) return;
            if constexpr (gpusched::detail::has_mark<Inlined, decltype(rules)...>)
                read_all(target.*member, except);
            else if constexpr (gpusched::detail::has_mark<Required, decltype(rules)...>)
                require(name, target.*member, rules...);
            else
                read(name, target.*member, rules...);
        });
    }
    /// Adds what `check()` throws.
    template <class F>
    void collect(F&& check) {
        python::collect(problems_, std::forward<F>(check));
    }
    void finish() {
        const std::vector known(taken_.begin(), taken_.end());
        for (const auto& [key, value] : dict_)
            collect([&, key = key] {
                const auto name = OptionType<std::string>::read(owner_, key);
                if (!taken_.contains(name) && !name.starts_with("x-"))
                    throw InvalidInput(bad_key(owner_, name, known));
            });
        throw_if_any();
    }
    /// `finish` for dicts that may hold anything else.
    void throw_if_any() { problems_.throw_if_any(); }

  private:
    std::string owner_;
    py::dict dict_;
    std::set<std::string> taken_, bad_;
    Problems problems_;
};

/// A struct with a table of fields is a dict in Python; None stands for its defaults.
template <Described T>
struct OptionType<T> {
    static T read(const std::string& field, py::handle value) {
        T result{};
        if (value.is_none()) return result;
        Fields fields(field, value);
        fields.read_all(result);
        fields.finish();
        return result;
    }
    static std::string literal(const T&) { return "None"; }
    static std::string type() { return "Mapping[str, Any] | None"; }
};

}  // namespace gpusched::python
