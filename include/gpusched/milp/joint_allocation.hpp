// SPDX-License-Identifier: Apache-2.0
// Joint allocation as a model: several jobs over access switches, with the most jobs placed and the least
// spread.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/milp/model.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/spec.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::milp {

/// A job of equal pods.
struct SwitchJob {
    std::string name{};
    int pods = 1;                               ///< >= 1
    int shape = 0;                              ///< index into JointProblem::shapes
    NetworkMode mode = NetworkMode::preferred;  ///< required: all pods on one switch, or none
    bool operator==(const SwitchJob&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<SwitchJob>, F&& field) {
    field("name", &SwitchJob::name);
    field("pods", &SwitchJob::pods);
    field("shape", &SwitchJob::shape);
    field("mode", &SwitchJob::mode);
}

/// The resources of a pod, as far as the model needs them.
struct PodShape {
    std::int64_t gpu_milli = 1000;  ///< thousandths of a GPU per pod, >= 0
    /// Per switch: pods of this shape that it can host without other new ones.
    std::vector<int> slots{};
    /// Per shape: pods of that shape that always fit in the place of one pod of this shape. Empty = 1 of this
    /// shape, 0 of the others.
    std::vector<int> in_place{};
    bool operator==(const PodShape&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<PodShape>, F&& field) {
    field("gpu_milli", &PodShape::gpu_milli);
    field("slots", &PodShape::slots);
    field("in_place", &PodShape::in_place);
}

struct JointProblem {
    std::vector<SwitchJob> jobs{};
    std::vector<std::string> switches{};  ///< unique names
    std::vector<PodShape> shapes{};
    bool operator==(const JointProblem&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<JointProblem>, F&& field) {
    field("jobs", &JointProblem::jobs);
    field("switches", &JointProblem::switches);
    field("shapes", &JointProblem::shapes);
}

/// A job with pods like one pending task of a cluster.
struct JobOfSample {
    std::string name{};
    TaskId sample = none<TaskId>;
    int pods = 1;  ///< >= 1
    NetworkMode mode = NetworkMode::preferred;
};

/// The pods of each job on each switch.
using JointAllocation = std::vector<std::vector<int>>;  // [job][switch]

/// The model of a joint allocation.
struct JointModel : Model {
    JointProblem problem{};
    double placed_worth = 0;  ///< worth of a placed job in the objective
    /// Returns the allocation of a vector. @throws InvalidInput unless there is one entry per column
    [[nodiscard]] JointAllocation decode(std::span<const double> values) const;
    /// Returns the vector of an allocation. @throws InvalidInput if the columns cannot express it
    [[nodiscard]] std::vector<double> encode(const JointAllocation& allocation) const;
};
template <class F>
constexpr void visit_fields(std::type_identity<JointModel>, F&& field) {
    visit_fields(std::type_identity<Model>{}, field);
    field("problem", &JointModel::problem);
    field("placed_worth", &JointModel::placed_worth);
}

/// Returns the entropy of a job's spread over switches: sum of -(n / P) ln(n / P), in nats.
[[nodiscard]] double spread_entropy(const std::vector<int>& pods);

/// Builds the problem of jobs over the domains of a level; by default the deepest level.
///
/// The slots of a domain are the pods that its nodes can host in addition to all running tasks, by
/// `find_obstacle` for one pod: GPUs and their memory, cores, memory, named resources, devices, guaranteed
/// localities, GPU model, labels and taints. LP pods can use what Standby tasks lend, so while any lends,
/// they have a shape of their own. A required network level of the sample becomes the job's mode. A node of
/// unknown position is a domain with its own name, with " (node)" after it if another domain has this name.
/// @throws InvalidInput for an unknown level, samples that are not pending, samples with another network
///     level, and samples in group constraints (anti-affinity, affinity, groups to avoid, near or to spread),
///     which the model does not support Complexity: O(shapes^2 x nodes).
[[nodiscard]] JointProblem joint_problem(const Cluster& cluster, std::span<const JobOfSample> jobs,
                                         std::optional<Level> level = std::nullopt);

/// Builds a model that places the most complete jobs, then minimises the total entropy. Jobs are weighted by
/// their part of all GPUs, or of all pods if no job has GPUs.
///
/// A binary z(j, s, n) states that job j has n pods on switch s. With counts as binaries the entropy is an
/// exact cost per column. A placed job counts -(ln S + 1), more than all entropies together. Rows: `count` one
/// per job and switch with columns, `gang` one per job, `capacity` one per switch and shape: a pod takes as
/// many slots of the shape as pods of it fit in its place. Exact if all jobs have one shape; otherwise a
/// relaxation, since GPUs and cores of a node may not divide as the rows allow.
/// @throws InvalidInput for pods below 1, names that appear twice, and shapes with lists of the wrong size or
///     negative numbers
[[nodiscard]] JointModel joint_allocation(const JointProblem& problem);

}  // namespace gpusched::milp
