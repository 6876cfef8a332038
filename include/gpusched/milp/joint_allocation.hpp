// SPDX-License-Identifier: Apache-2.0
// Several jobs over access switches as a model: place the most jobs, spread them the least.
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
    NetworkMode mode = NetworkMode::preferred;  ///< required: all pods on one switch, or not placed
    bool operator==(const SwitchJob&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<SwitchJob>, F&& field) {
    field("name", &SwitchJob::name);
    field("pods", &SwitchJob::pods);
    field("shape", &SwitchJob::shape);
    field("mode", &SwitchJob::mode);
}

/// What a pod asks for, as far as the model knows it.
struct PodShape {
    std::int64_t gpu_milli = 1000;  ///< thousandths of a GPU of one pod, >= 0
    std::vector<int> slots{};  ///< per switch: how many such pods it hosts while it hosts no other new ones
    /// Per shape: how many pods of that shape surely run in the place of one pod of this shape. Empty = 1 of
    /// this shape, 0 of the others.
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
    std::vector<std::string> switches{};  ///< different names
    std::vector<PodShape> shapes{};
    bool operator==(const JointProblem&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<JointProblem>, F&& field) {
    field("jobs", &JointProblem::jobs);
    field("switches", &JointProblem::switches);
    field("shapes", &JointProblem::shapes);
}

/// A job whose pods ask for what one pending task of a cluster asks for.
struct JobOfSample {
    std::string name{};
    TaskId sample = none<TaskId>;
    int pods = 1;  ///< >= 1
    NetworkMode mode = NetworkMode::preferred;
};

/// How many pods of each job run on each switch.
using JointAllocation = std::vector<std::vector<int>>;  // [job][switch]

/// The model of a joint allocation.
struct JointModel : Model {
    JointProblem problem{};
    double placed_worth = 0;  ///< what a placed job counts in the objective
    /// @throws InvalidInput unless there is one entry per column
    [[nodiscard]] JointAllocation decode(std::span<const double> values) const;
    /// @throws InvalidInput for an allocation that the columns cannot express
    [[nodiscard]] std::vector<double> encode(const JointAllocation& allocation) const;
};
template <class F>
constexpr void visit_fields(std::type_identity<JointModel>, F&& field) {
    visit_fields(std::type_identity<Model>{}, field);
    field("problem", &JointModel::problem);
    field("placed_worth", &JointModel::placed_worth);
}

/// The entropy of one job's spread over switches: sum of -(n / P) ln(n / P), in nats.
[[nodiscard]] double spread_entropy(const std::vector<int>& pods);

/// The joint allocation of jobs over the domains of a level; without one, of the deepest level known.
///
/// The slots of a domain are the pods that its nodes host one after the other beside all that runs there:
/// GPUs and their memory, cores, memory, named resources, devices, guaranteed localities, GPU model, labels
/// and taints, as `find_obstacle` judges one pod. LP pods have slots on what Standby tasks lend, so where any
/// lends, they are another shape than pods that ask for the same. A required network level of the sample
/// itself is the job's mode. A node of unknown position is a domain of its own name, with " (node)" behind it
/// where another domain is called the same.
/// @throws InvalidInput for a level that the cluster does not have, samples that are not pending, samples
///         with another network level, and samples in group constraints (anti-affinity, affinity, groups to
///         avoid, near or to spread), which the model does not hold O(shapes^2 x nodes).
[[nodiscard]] JointProblem joint_problem(const Cluster& cluster, std::span<const JobOfSample> jobs,
                                         std::optional<Level> level = std::nullopt);

/// Chooses pods per switch for every job: the most jobs placed entirely, then the least total entropy, each
/// job's weighed with its part of all GPUs; of all pods where no job has any GPU.
///
/// A binary z(j, s, n) says that job j has n pods on switch s; with counts as binaries the entropy is a cost
/// per column, and exact. A placed job counts -(ln S + 1), more than all entropies together.
///
/// Columns: sum over jobs and switches of min(pods, slots) + 1 where that is above 0 (of a job with
/// `required`: 2 where slots >= pods, else none), and one `placed` per job. Rows: `count` one per job and
/// switch with columns, `gang` one per job, `capacity` one per switch and shape: every pod takes as many
/// slots of the shape as pods of it run in the pod's place. Exact where all jobs have one shape; with several
/// shapes a relaxation (a node's GPUs and cores may not divide up as the rows allow).
/// @throws InvalidInput for pods below 1, names that appear twice, and shapes whose lists do not match or
///     hold numbers below 0
[[nodiscard]] JointModel joint_allocation(const JointProblem& problem);

}  // namespace gpusched::milp
