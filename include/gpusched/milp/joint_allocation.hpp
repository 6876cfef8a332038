// Several jobs over access switches as a model: place the most jobs, spread them the least.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/milp/model.hpp>
#include <gpusched/model/cluster.hpp>

#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace GPUSCHED_NAMESPACE::milp {

/// A job of equal pods.
struct SwitchJob {
    std::string name{};
    int pods = 1;  ///< >= 1
    int gpus = 1;  ///< per pod, >= 1
    bool operator==(const SwitchJob&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<SwitchJob>, F&& field) {
    field("name", &SwitchJob::name);
    field("pods", &SwitchJob::pods);
    field("gpus", &SwitchJob::gpus);
}

/// A switch with the idle GPUs of its nodes.
struct SwitchRoom {
    std::string name{};
    std::vector<int> idle{};  ///< one entry per node
    bool operator==(const SwitchRoom&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<SwitchRoom>, F&& field) {
    field("name", &SwitchRoom::name);
    field("idle", &SwitchRoom::idle);
}

struct JointProblem {
    std::vector<SwitchJob> jobs{};
    std::vector<SwitchRoom> switches{};
    bool operator==(const JointProblem&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<JointProblem>, F&& field) {
    field("jobs", &JointProblem::jobs);
    field("switches", &JointProblem::switches);
}

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

/// The idle GPUs of the schedulable nodes under each domain of a level; without one, of the deepest level known.
/// @throws InvalidInput for a level that the cluster does not have
[[nodiscard]] std::vector<SwitchRoom> switch_rooms(const Cluster& cluster,
                                                   std::optional<Level> level = std::nullopt);

/// Chooses pods per switch for every job: the most jobs placed entirely, then the least total entropy, each job's weighed with
/// its part of all GPUs.
///
/// A binary z(j, s, n) says that job j has n pods on switch s; with counts as binaries the entropy is a cost per column, and
/// exact. A placed job counts -(ln S + 1), more than all entropies together.
///
/// Columns: sum over jobs and switches of min(pods, slots) + 1 where that is above 0, and one `placed` per job. Rows: `count`
/// one per job and switch with columns, `gang` one per job, `capacity` one per switch and distinct shape: pods of g GPUs take
/// floor(g / shape) slots of that shape. Exact where all jobs have one shape; with several shapes a relaxation (a node's
/// GPUs may not divide up as the rows allow).
/// @throws InvalidInput for pods or GPUs below 1, names that appear twice, negative idle GPUs
[[nodiscard]] JointModel joint_allocation(const JointProblem& problem);

}  // namespace GPUSCHED_NAMESPACE::milp

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/milp/impl/joint_allocation.ipp>
#endif
