// What Python holds of a plan: names instead of ids, so that it stands on its own.
#pragma once

#include "bindings.hpp"

#include <gpusched/core/stop_reason.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/model/spec.hpp>

#include <optional>
#include <vector>

namespace gpusched::python {

struct NamedPlan {
    PlanSpec spec;
    std::optional<StopReason> stop_reason{};  ///< absent for a plan that was read
    /// Pods of a job that the plan's snapshot does not have: `verify.plan` and `apply` add them, pending. Files leave them out.
    std::vector<TaskSpec> new_tasks{};
    /// `moves` as Python's tuple, made at the first access. Plans never change in Python.
    mutable py::object moves_tuple{};

    /// Same steps, same claims. Not why the search ended: that is no part of the format.
    bool operator==(const NamedPlan& other) const {
        return spec == other.spec && new_tasks == other.new_tasks;
    }
};

/// A plan from what callers may pass for one: a Plan, a dict, or the path of a file.
/// @throws InvalidInput with everything that is wrong with the file or dict
PlanSpec plan_argument(const py::object& plan);

/// The tasks that a plan brings along, of a Plan that `make_room` made.
std::vector<TaskSpec> new_tasks_of(const py::object& plan);
/// Adds those that the snapshot does not have.
void add_new_tasks(ClusterSpec& snapshot, const std::vector<TaskSpec>& tasks);

/// True for what names a file: a string or anything with `__fspath__`.
bool is_path(const py::object& source);
std::string path_text(const py::object& source);

/// A bound as a dict, with the keys of the plan format.
py::dict bound_dict(const Bound& bound);

/// A statistic as Python shows it: whole numbers as int.
py::object number(double value);

}  // namespace gpusched::python
