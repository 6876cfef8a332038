// Pickling of plain C++ structs: their members one after the other, nested structs as tuples of their own.
#pragma once

#include "core/bindings.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/core/fields.hpp>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::python {

/// Which members a struct has: those of its table of fields, or specialise with `static void visit(auto& value, auto&& each)`,
/// which calls `each(member)` for every one of them; `value` is const while saving. `check(value)`, if there is one, is called
/// after loading.
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

/// The base of a struct as a member of it.
template <class Base, class T>
auto& base_of(T& value) {
    return static_cast<std::conditional_t<std::is_const_v<T>, const Base&, Base&>>(value);
}

namespace detail {

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

template <class T>
struct PickleOf {  // structs
    static py::object save(const T& value) {
        py::list state;
        Members<T>::visit(value, [&](const auto& member) {
            state.append(PickleOf<std::remove_cvref_t<decltype(member)>>::save(member));
        });
        return py::tuple(state);
    }
    static T load(const py::handle& from) {
        const auto state = from.cast<py::tuple>();
        T value{};
        std::size_t i = 0;
        Members<T>::visit(value, [&](auto& member) {
            if (i == state.size()) throw InvalidInput("pickle: too short");
            member = PickleOf<std::remove_cvref_t<decltype(member)>>::load(state[i++]);
        });
        if (i != state.size()) throw InvalidInput("pickle: too long");
        if constexpr (requires { Members<T>::check(value); }) Members<T>::check(value);
        return value;
    }
};

template <Plain T>
struct PickleOf<T> {
    using Number =
        typename std::conditional_t<std::is_enum_v<T>, std::underlying_type<T>, std::type_identity<T>>::type;
    static py::object save(T value) { return py::cast(static_cast<Number>(value)); }
    static T load(const py::handle& from) { return static_cast<T>(from.cast<Number>()); }
};

template <>
struct PickleOf<std::string> {
    static py::object save(const std::string& value) { return py::bytes(value); }
    static std::string load(const py::handle& from) { return from.cast<std::string>(); }
};

/// What Python objects hold anyway, such as the cluster of a model.
template <class T>
struct PickleOf<std::shared_ptr<T>> {
    static py::object save(const std::shared_ptr<T>& value) { return py::cast(value); }
    static std::shared_ptr<T> load(const py::handle& from) { return from.cast<std::shared_ptr<T>>(); }
};

template <class T>
struct PickleOf<std::optional<T>> {
    static py::object save(const std::optional<T>& value) {
        return value ? PickleOf<T>::save(*value) : py::object(py::none());
    }
    static std::optional<T> load(const py::handle& from) {
        if (from.is_none()) return std::nullopt;
        return PickleOf<T>::load(from);
    }
};

template <class T>
struct PickleOf<std::vector<T>> {
    static constexpr bool whole = Plain<T> && !std::is_same_v<T, bool>;  // one block of bytes
    static py::object save(const std::vector<T>& values) {
        if constexpr (whole) {
            return py::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
        } else {
            py::tuple all(values.size());
            for (std::size_t i = 0; i < values.size(); ++i) all[i] = PickleOf<T>::save(values[i]);
            return all;
        }
    }
    static std::vector<T> load(const py::handle& from) {
        std::vector<T> values;
        if constexpr (whole) {
            const auto bytes = from.cast<std::string>();
            if (bytes.size() % sizeof(T) != 0) throw InvalidInput("pickle: an array is cut");
            values.resize(bytes.size() / sizeof(T));
            if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
        } else {
            for (const auto item : from.cast<py::tuple>()) values.push_back(PickleOf<T>::load(item));
        }
        return values;
    }
};

}  // namespace detail

/// Whether two states of objects are the same; what is not a number is the same as what is not a number.
inline bool same_state(py::handle a, py::handle b) {
    if (PyFloat_Check(a.ptr()) && PyFloat_Check(b.ptr())) {
        const double x = PyFloat_AS_DOUBLE(a.ptr()), y = PyFloat_AS_DOUBLE(b.ptr());
        return x == y || (std::isnan(x) && std::isnan(y));
    }
    if (!py::isinstance<py::tuple>(a) || !py::isinstance<py::tuple>(b)) return a.equal(b);
    const auto left = py::reinterpret_borrow<py::tuple>(a), right = py::reinterpret_borrow<py::tuple>(b);
    if (left.size() != right.size()) return false;
    for (std::size_t i = 0; i < left.size(); ++i)
        if (!same_state(left[i], right[i])) return false;
    return true;
}

/// Adds equality: objects of one class are equal whose pickles hold the same.
/// @param state what the pickle of an object holds
template <class T, class... Rest, class State>
void define_equality(py::class_<T, Rest...>& type, State state) {
    type.def("__eq__", [state](const py::object& self, const py::object& other) -> py::object {
        if (!py::type::of(self).is(py::type::of(other)))
            return py::reinterpret_borrow<py::object>(Py_NotImplemented);
        if (self.is(other)) return py::bool_(true);
        return py::bool_(same_state(state(self.cast<const T&>()), state(other.cast<const T&>())));
    });
}

/// Adds equality and pickling to a class whose objects never change, so that copies are the object itself.
template <class T, class... Rest>
void define_pickling(py::class_<T, Rest...>& type) {
    define_equality(type, [](const T& value) { return detail::PickleOf<T>::save(value); });
    type.def("__copy__", [](const py::object& self) { return self; })
        .def(
            "__deepcopy__", [](const py::object& self, const py::dict&) { return self; }, py::arg("memo"))
        .def(py::pickle(
            [](const T& value) { return detail::PickleOf<T>::save(value).template cast<py::tuple>(); },
            [](const py::tuple& state) { return detail::PickleOf<T>::load(state); }));
}

}  // namespace gpusched::python
