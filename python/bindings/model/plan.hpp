// What Python holds of a plan: names instead of ids, so that it stands on its own.
#pragma once

#include "support/bindings.hpp"

#include <gpusched/core/budget.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/model/spec.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpusched::python {

/// A job that the snapshot of a plan does not have: its pods, pending, and where it says more than its name, the job.
struct Brought {
    std::vector<TaskSpec> tasks{};
    std::vector<JobSpec> jobs{};
    std::vector<std::string> label_levels{};  ///< to which levels of `tasks` refer

    Brought() = default;
    /// The tasks and jobs of a snapshot.
    explicit Brought(ClusterSpec snapshot);
    bool operator==(const Brought&) const = default;
};
/// @param pods of one job of the cluster
Brought brought_pods(const Cluster& cluster, std::span<const TaskId> pods);

struct NamedPlan {
    PlanSpec spec;
    std::optional<StopReason> stop_reason{};  ///< absent for a plan that was read
    Brought brought{};                        ///< `verify.plan` and `apply` add it; in files under `x-brings`
    /// `moves` as Python's tuple, made at the first access. Plans never change in Python.
    mutable py::object moves_tuple{};

    /// Same steps, same claims. Not why the search ended: that is no part of the format.
    bool operator==(const NamedPlan& other) const { return spec == other.spec && brought == other.brought; }
};

/// A plan from what callers may pass for one: a Plan, a dict, or the path of a file.
/// @throws InvalidInput with everything that is wrong with the file or dict
PlanSpec plan_argument(const py::object& plan);

/// The same with what it brings along: a Plan that `admit` made for a job given as a dict, or a document of one.
NamedPlan named_plan(const py::object& plan);
/// Adds what the snapshot does not have.
void add(ClusterSpec& snapshot, const Brought& brought);
/// The cluster itself, or where the plan brings pods along, one that has them too. Needs no interpreter lock.
std::shared_ptr<Cluster> with_brought(const std::shared_ptr<Cluster>& cluster, const NamedPlan& plan);

/// Placements with names instead of ids, in this order.
std::vector<PlanSpec::Placement> named_placements(const Cluster& cluster,
                                                  const std::vector<Placement>& placements);

/// A bound as a dict, with the keys of the plan format.
py::dict bound_dict(const Bound& bound);

}  // namespace gpusched::python
