// SPDX-License-Identifier: Apache-2.0
// Python objects with a type for signatures: arguments of several types, and results made of dicts and lists.
#pragma once

#include "support/keywords.hpp"

#include <gpusched/core/gpu_mask.hpp>

#include <pybind11/typing.h>

#include <cmath>
#include <cstddef>

namespace gpusched::python {

/// A Python object that signatures and stubs show with this type. The type is not checked here: the code that
/// reads an argument checks it, with our own messages. Classes of the package may be named without their
/// module.
template <TypeText type>
class Typed : public py::object {
  public:
    Typed() = default;
    Typed(py::object value) : py::object(std::move(value)) {}      // NOLINT: implicit
    Typed(const char* text) : py::object(py::str(text)) {}         // NOLINT: implicit
    Typed(const std::string& text) : py::object(py::str(text)) {}  // NOLINT: implicit
    Typed(py::handle value, borrowed_t) : py::object(value, borrowed_t{}) {}
    Typed(py::handle value, stolen_t) : py::object(value, stolen_t{}) {}
    template <class Policy>
    Typed(const py::detail::accessor<Policy>& value) : py::object(value) {}  // NOLINT: implicit
    static bool check_(py::handle value) { return value.ptr() != nullptr; }
};

// Arguments.

/// The name of an enumerator. `OptionType<E>` reads it; its messages list all names.
template <NamedEnum E>
using Name = Typed<literal_type<E>>;
using Integer = Typed<"int">;
using Number = Typed<"float">;
using Integers = Typed<"Sequence[int]">;
using PathLike = Typed<"str | PathLike[str]">;
using Document = Typed<"Mapping[str, Any] | str">;  ///< a dict, or JSON text
using DocumentOrPath = Typed<"Mapping[str, Any] | str | PathLike[str]">;
using PlanLike = Typed<"Plan | Mapping[str, Any] | str | PathLike[str]">;
using TaskLike = Typed<"Mapping[str, Any] | str | Task">;
using JobLike = Typed<"Mapping[str, Any] | str">;
using LevelLike = Typed<"int | Literal['node']">;
using OptionalLevel = Typed<"int | Literal['node'] | None">;
using WorkloadLike = Typed<"Workload | Trace | Cluster | Sequence[Mapping[str, Any]]">;
using ProgressLike = Typed<"bool | Callable[[str, int, int], object] | None">;
using SolverLike = Typed<"str | Callable[[Model, dict[str, Any]], Mapping[str, Any]]">;

/// Numbers of GPUs of a node.
/// @throws InvalidInput for numbers above the limit of a node
inline std::vector<int> gpu_numbers(const Integers& gpus) {
    std::vector<int> numbers;
    for (const auto& gpu : OptionType<std::vector<py::object>>::read("gpus", gpus))
        numbers.push_back(read_within("gpus", gpu, 0, max_gpus_per_node - 1));
    return numbers;
}

// Results.
using Strings = Typed<"list[str]">;
using JsonObject = Typed<"dict[str, Any]">;
using JsonObjects = Typed<"list[dict[str, Any]]">;
using OptionalString = Typed<"str | None">;
using OptionalNumber = Typed<"float | None">;
using Frame = Typed<"pandas.DataFrame">;
using Frames = Typed<"tuple[pandas.DataFrame, pandas.DataFrame]">;
using ArrowTable = Typed<"pyarrow.Table">;
using ArrowTables = Typed<"tuple[pyarrow.Table, pyarrow.Table]">;
using BoundDict = Typed<"gpusched._types.Bound">;

/// Adds the text of an object, its table and its HTML, which the functions `text`, `to_pandas` and `html` of a
/// Python module compute.
/// @param functions prefix of their names, such as `_views.maintenance.drain_`
/// @param rows of the table, in words
template <class Class>
void define_views(Class& type, const std::string& functions, const std::string& rows) {
    define_in_python<py::str>(type, "__str__", functions + "text", "The text, as the console prints it.");
    define_in_python<Frame>(type, "to_pandas", functions + "to_pandas",
                            "A pandas DataFrame with " + rows + ".");
    define_in_python<py::str>(type, "_repr_html_", functions + "html", "The HTML, for notebooks.");
}

/// None for infinity and NaN.
inline OptionalNumber finite_or_none(double value) {
    return std::isfinite(value) ? py::object(py::float_(value)) : py::none();
}

/// As an option: an object that the function reads itself.
template <TypeText text>
struct OptionType<Typed<text>> {
    static Typed<text> read(const std::string&, py::handle value) {
        return py::reinterpret_borrow<py::object>(value);
    }
    static std::string literal(const Typed<text>& value) {
        return value ? py::repr(value).template cast<std::string>() : std::string("None");
    }
    static std::string type() { return text.text; }
};

}  // namespace gpusched::python

namespace pybind11::detail {

template <gpusched::python::TypeText text>
struct handle_type_name<gpusched::python::Typed<text>> {
    static constexpr auto name = const_name(text.text);
};

}  // namespace pybind11::detail
