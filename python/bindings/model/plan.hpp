// SPDX-License-Identifier: Apache-2.0
// Plans in Python, with names instead of ids, so that they do not depend on the cluster.
#pragma once

#include "support/bindings.hpp"

#include <gpusched/core/budget.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/model/spec.hpp>

#include <span>

namespace gpusched::python {

/// A job that the snapshot of a plan does not have: its pending pods, and the job if it has more than a name.
struct Brought {
    std::vector<TaskSpec> tasks{};
    std::vector<JobSpec> jobs{};
    std::vector<std::string> label_levels{};  ///< the labels of levels in `tasks`

    Brought() = default;
    /// The tasks and jobs of a snapshot.
    explicit Brought(ClusterSpec snapshot);
    bool operator==(const Brought&) const = default;
};
/// @param pods of one job of the cluster
Brought brought_pods(const Cluster& cluster, std::span<const TaskId> pods);

struct NamedPlan {
    PlanSpec spec;
    std::optional<StopReason> stop_reason{};  ///< absent for a plan from a file
    Brought brought{};                        ///< added by `verify.plan` and `apply`; `x-brings` in files
    /// `moves` as a Python tuple, made at the first access. Plans never change in Python.
    mutable py::object moves_tuple{};

    /// Equal steps and claims. The stop reason does not count, because the format does not contain it.
    bool operator==(const NamedPlan& other) const { return spec == other.spec && brought == other.brought; }
};

/// A plan from a Plan, a dict, or the path of a file.
/// @throws InvalidInput with all problems of the file or dict
PlanSpec plan_argument(const py::object& plan);

/// The same with its added tasks and jobs, which a plan of `admit` for a job given as a dict has.
NamedPlan named_plan(const py::object& plan);
/// Adds the tasks and jobs that the snapshot does not have.
void add(ClusterSpec& snapshot, const Brought& brought);
/// The cluster, with the pods that the plan adds, if any. Does not need the interpreter lock.
std::shared_ptr<Cluster> with_brought(const std::shared_ptr<Cluster>& cluster, const NamedPlan& plan);

/// Placements with names instead of ids, in this order.
std::vector<PlanSpec::Placement> named_placements(const Cluster& cluster,
                                                  const std::vector<Placement>& placements);

/// A bound as a dict, with the keys of the plan format.
py::dict bound_dict(const Bound& bound);

}  // namespace gpusched::python
