// SPDX-License-Identifier: Apache-2.0
// First include of every binding unit: pybind11 with all its casters (all units must see the same ones), the
// standard headers that most units use, the functions that bind the components, and shared helpers.
#pragma once

#include "support/enumerations.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

namespace gpusched::python {

/// @throws InvalidInput for an object that `__new__` made and that has no value yet
[[noreturn]] void refuse_without_value();

}  // namespace gpusched::python

namespace pybind11::detail {

/// Rejects None with a TypeError. pybind11's own caster would make a null pointer, which no function here
/// expects. The constraint makes this specialisation more specific than pybind11's, so the compiler chooses
/// it.
template <class T>
    requires std::is_class_v<T>
class type_caster<std::shared_ptr<T>> : public copyable_holder_caster<T, std::shared_ptr<T>> {
  public:
    bool load(handle source, bool convert) {
        try {
            return !source.is_none() && copyable_holder_caster<T, std::shared_ptr<T>>::load(source, convert);
        } catch (const cast_error&) {
            gpusched::python::refuse_without_value();
        }
    }
};

}  // namespace pybind11::detail

namespace gpusched::python {

namespace py = pybind11;

// One function per component, in <component>/<component>.cpp: it adds gpusched.<component> and calls its
// other files.
void bind_core(py::module_& m);
void bind_json(py::module_& m);
void bind_model(py::module_& m);
void bind_topology(py::module_& m);
void bind_verify(py::module_& m);
void bind_io(py::module_& m);
void bind_fragmentation(py::module_& m);
void bind_allocation(py::module_& m);
void bind_consolidation(py::module_& m);
void bind_preemption(py::module_& m);
void bind_admission(py::module_& m);
void bind_milp(py::module_& m);
void bind_serving(py::module_& m);
void bind_control(py::module_& m);
void bind_sim(py::module_& m);

/// The documentation of a C++ declaration, which `extract_docs.py` extracts from the headers at build time.
/// @param name qualified, without the leading `gpusched::`, such as `consolidation::Options::depth`
/// @throws std::logic_error if no header documents the name; the import of the module fails then
const std::string& doc(std::string_view name);

namespace detail {

/// The C++ name of a class in the table of documentation: without the leading `gpusched::` and unnamed
/// namespaces.
template <class T>
std::string documented_name() {
    std::string name = __PRETTY_FUNCTION__;  // ... [with T = gpusched::sim::ReplayOptions; ...
    name.erase(0, name.find("T = ") + 4);
    name.erase(name.find_first_of(";]"));
    name.erase(0, std::string_view("gpusched::").size());
    for (const std::string_view unnamed : {"{anonymous}::", "(anonymous namespace)::"})
        if (const auto at = name.find(unnamed); at != name.npos) name.erase(at, unnamed.size());
    return name;
}

}  // namespace detail

/// The documentation of a field, from the struct that declares it.
template <class V, class T>
const std::string& doc(V T::*, const char* name) {
    return doc(detail::documented_name<T>() + "::" + name);
}

/// The docstring of a function, as the last argument of its `def`. The function's signature precedes the text,
/// such as `place(cluster, task, *, rankers=None)`; Python shows it in `help` and `inspect.signature`.
struct Docstring {
    std::string text;
    std::string rest{};      ///< parameters without a name in C++: "*jobs" or "**changes"
    std::string keywords{};  ///< keyword-only parameters with their defaults

    void add_to(py::detail::function_record& function) const;
    mutable std::string whole{};  ///< of the function's record, until pybind11 copies it
};
inline Docstring documented(std::string text, std::string rest = {}) {
    return {std::move(text), std::move(rest)};
}

/// Text from other sources, such as the output of a program. Bytes that are not UTF-8 become `\xff`.
py::str foreign_text(std::string_view text);
py::list foreign_texts(const std::vector<std::string>& texts);

/// Adds support for the pickle protocols 0 and 1 to all classes of a module, and refuses objects without a
/// value: a pickle can leave out the state of an object, and pybind11 would make one of undefined memory.
void check_pickles(const py::handle& scope);

/// Lets error messages of all functions name the wrong argument and the expectation. Call it after all
/// functions are bound.
void explain_arguments(const py::module_& m);

/// Calls Python's C API to wait for the interpreter lock, or to run Python code. If the interpreter has shut
/// down meanwhile, waits until the process ends: before 3.14, Python ends a thread that is not the main one by
/// unwinding its stack, and the destructors of C++ must not run without the lock.
template <class F>
void until_exit(F&& call) {
#ifdef __GLIBCXX__
    try {
        call();
    } catch (const abi::__forced_unwind&) {
        while (true) std::this_thread::sleep_for(std::chrono::hours(1));
    }
#else
    call();
#endif
}

/// Holds the interpreter lock.
class WithLock {
  public:
    WithLock() {
        until_exit([&] { lock_.emplace(); });
    }

  private:
    std::optional<py::gil_scoped_acquire> lock_;
};

/// Releases the interpreter lock, and waits for it at the end.
class WithoutLock {
  public:
    WithoutLock() : state_(PyEval_SaveThread()) {}
    WithoutLock(const WithoutLock&) = delete;
    WithoutLock& operator=(const WithoutLock&) = delete;
    ~WithoutLock() {
        until_exit([&] { PyEval_RestoreThread(state_); });
    }

  private:
    PyThreadState* state_;
};

/// Runs a short computation without the interpreter lock.
template <class F>
auto unlocked(F&& f) {
    const WithoutLock released;
    return std::forward<F>(f)();
}

/// Calls a Python function from an algorithm that runs without the interpreter lock.
template <class... Arguments>
py::object call_python(const py::object& function, Arguments&&... arguments) {
    const auto tuple = py::make_tuple(std::forward<Arguments>(arguments)...);
    PyObject* result = nullptr;
    until_exit([&] { result = PyObject_CallObject(function.ptr(), tuple.ptr()); });
    if (result == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(result);
}

/// A number with its noun: `1 node`, `2 nodes`.
inline std::string counted(std::int64_t count, const std::string& one) {
    return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}
template <class Container>
    requires requires(const Container& c) { c.size(); }
std::string counted(const Container& items, const std::string& one) {
    return counted(static_cast<std::int64_t>(items.size()), one);
}

/// Adds a method without arguments that calls a function of one of the package's Python modules.
/// @tparam Result type of the result, such as `py::str`
/// @param function such as `_views.frames.cluster_to_pandas`
template <class Result, class Class>
void define_in_python(Class& type, const char* name, std::string_view function, std::string text) {
    const auto dot = function.rfind('.');
    const auto module = "gpusched." + std::string(function.substr(0, dot));
    type.def(
        name,
        [module, called = std::string(function.substr(dot + 1))](const py::object& self) -> Result {
            return py::module_::import(module.c_str()).attr(called.c_str())(self);
        },
        documented(std::move(text)));
}

/// A submodule of `_core` with classes and functions that show `gpusched.<name>`, the public module, as their
/// module.
inline py::module_ submodule(py::module_& m, const char* name) {
    auto sub = m.def_submodule(name);
    sub.attr("__name__") = std::string("gpusched.") + name;
    return sub;
}

}  // namespace gpusched::python

namespace pybind11::detail {

/// The text of a class or a property.
template <>
struct process_attribute<std::string> : process_attribute_default<std::string> {
    static void init(const std::string& text, function_record* function) {
        process_attribute<const char*>::init(text.c_str(), function);
    }
    static void init(const std::string& text, type_record* type) {
        process_attribute<const char*>::init(text.c_str(), type);
    }
};

template <>
struct process_attribute<gpusched::python::Docstring>
    : process_attribute_default<gpusched::python::Docstring> {
    static void init(const gpusched::python::Docstring& text, function_record* function) {
        text.add_to(*function);
    }
};

}  // namespace pybind11::detail
