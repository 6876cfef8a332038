// What Python holds of a plan: names instead of ids, so that it stands on its own.
#pragma once

#include "bindings.hpp"

#include <gpusched/core/stop_reason.hpp>
#include <gpusched/model/plan.hpp>

#include <optional>

namespace gpusched::python {

struct NamedPlan {
    PlanSpec spec;
    std::optional<StopReason> stop_reason{};  ///< absent for a plan that was read
    /// `moves` as Python's tuple, made at the first access. Plans never change in Python.
    mutable py::object moves_tuple{};

    bool operator==(const NamedPlan& other) const {
        return spec == other.spec && stop_reason == other.stop_reason;
    }
};

/// A plan from what callers may pass for one: a Plan, a dict, or the path of a file.
/// @throws InvalidInput with everything that is wrong with the file or dict
PlanSpec plan_argument(const py::object& plan);

/// True for what names a file: a string or anything with `__fspath__`.
bool is_path(const py::object& source);
std::string path_text(const py::object& source);

/// A bound as a dict, with the keys of the plan format.
py::dict bound_dict(const Bound& bound);

/// A statistic as Python shows it: whole numbers as int.
py::object number(double value);

}  // namespace gpusched::python
