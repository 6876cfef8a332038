// SPDX-License-Identifier: Apache-2.0
// States of plain C++ structs for pickles: tuples of their members; nested structs are nested tuples.
#pragma once

#include "support/values.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/core/fields.hpp>

#include <cstring>

namespace gpusched::python {

/// The members of a struct: the fields of its table, or a specialisation with `static void visit(auto& value,
/// auto&& each)`, which calls `each(member)` for every member; `value` is const while saving. An optional
/// `check(value)` runs after loading.
template <class T>
struct Members;

template <Described T>
struct Members<T> {
    static void visit(auto& value, auto&& each) {
        visit_fields(std::type_identity<T>{},
                     [&](const char*, auto member, const auto&...) { each(value.*member); });
    }
    static void check(const T& value) {
        if constexpr (requires { validate(value); }) validate(value);
    }
};

namespace detail {

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

template <class T>
struct StateOf {  // structs
    static py::object save(const T& value) {
        py::list state;
        Members<T>::visit(value, [&](const auto& member) {
            state.append(StateOf<std::remove_cvref_t<decltype(member)>>::save(member));
        });
        return py::tuple(state);
    }
    static T load(const py::handle& from) {
        const auto state = from.cast<py::tuple>();
        T value{};
        std::size_t i = 0;
        Members<T>::visit(value, [&](auto& member) {
            if (i == state.size()) throw InvalidInput("expected more members");
            member = StateOf<std::remove_cvref_t<decltype(member)>>::load(state[i++]);
        });
        if (i != state.size()) throw InvalidInput("expected fewer members");
        if constexpr (requires { Members<T>::check(value); }) Members<T>::check(value);
        return value;
    }
};

template <Plain T>
struct StateOf<T> {
    using Number =
        typename std::conditional_t<std::is_enum_v<T>, std::underlying_type<T>, std::type_identity<T>>::type;
    static py::object save(T value) { return py::cast(static_cast<Number>(value)); }
    static T load(const py::handle& from) { return static_cast<T>(from.cast<Number>()); }
};

template <>
struct StateOf<std::string> {
    static py::object save(const std::string& value) { return py::bytes(value); }
    static std::string load(const py::handle& from) { return from.cast<std::string>(); }
};

/// Objects that Python already holds, such as the cluster of a model.
template <class T>
struct StateOf<std::shared_ptr<T>> {
    static py::object save(const std::shared_ptr<T>& value) { return py::cast(value); }
    static std::shared_ptr<T> load(const py::handle& from) { return from.cast<std::shared_ptr<T>>(); }
};

template <class T>
struct StateOf<std::optional<T>> {
    static py::object save(const std::optional<T>& value) {
        return value ? StateOf<T>::save(*value) : py::object(py::none());
    }
    static std::optional<T> load(const py::handle& from) {
        if (from.is_none()) return std::nullopt;
        return StateOf<T>::load(from);
    }
};

template <class T>
struct StateOf<std::vector<T>> {
    static constexpr bool whole = Plain<T> && !std::is_same_v<T, bool>;  // one block of bytes
    static py::object save(const std::vector<T>& values) {
        if constexpr (whole) {
            return py::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
        } else {
            py::tuple all(values.size());
            for (std::size_t i = 0; i < values.size(); ++i) all[i] = StateOf<T>::save(values[i]);
            return all;
        }
    }
    static std::vector<T> load(const py::handle& from) {
        std::vector<T> values;
        if constexpr (whole) {
            const auto bytes = from.cast<std::string>();
            if (bytes.size() % sizeof(T) != 0) throw InvalidInput("an array is incomplete");
            values.resize(bytes.size() / sizeof(T));
            if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
        } else {
            for (const auto item : from.cast<py::tuple>()) values.push_back(StateOf<T>::load(item));
        }
        return values;
    }
};

}  // namespace detail

/// Adds equality, copies and pickling to a class of plain structs.
template <class T, class... Rest>
void define_value(py::class_<T, Rest...>& type) {
    define_value(
        type, [](const T& value) { return detail::StateOf<T>::save(value).template cast<py::tuple>(); },
        [](const py::tuple& state) { return detail::StateOf<T>::load(state); });
}

}  // namespace gpusched::python
