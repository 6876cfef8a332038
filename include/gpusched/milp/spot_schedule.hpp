// SPDX-License-Identifier: Apache-2.0
// Spot scheduling as a model: when and where tasks run, with few restarts and much committed work.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/milp/model.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::milp {

/// A task over slots of time.
struct SpotTask {
    std::string name{};
    int arrival = 0;  ///< first slot in which it can run, >= 0
    int pods = 1;     ///< pods, which run together, >= 1
    int gpus = 1;     ///< GPUs per pod, >= 1
    bool hp = false;  ///< high priority: it must start, and is never evicted
    /// Ascending slots of run time at which progress is kept; the last = its length.
    std::vector<int> checkpoints{};
    int max_delay = 0;  ///< high priority only: latest start in slots after the arrival, >= 0
    bool operator==(const SpotTask&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<SpotTask>, F&& field) {
    field("name", &SpotTask::name);
    field("arrival", &SpotTask::arrival);
    field("pods", &SpotTask::pods);
    field("gpus", &SpotTask::gpus);
    field("hp", &SpotTask::hp);
    field("checkpoints", &SpotTask::checkpoints, Required{});
    field("max_delay", &SpotTask::max_delay);
}

struct SpotProblem {
    std::vector<SpotTask> tasks{};
    std::vector<int> nodes{};  ///< GPUs of each node
    int horizon = 0;           ///< slots, >= 1
    double alpha = 1;          ///< weight of the utilisation, >= 0
    bool operator==(const SpotProblem&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<SpotProblem>, F&& field) {
    field("tasks", &SpotProblem::tasks);
    field("nodes", &SpotProblem::nodes);
    field("horizon", &SpotProblem::horizon);
    field("alpha", &SpotProblem::alpha);
}

/// The second term of the objective.
enum class SpotMode : std::uint8_t {
    meaning,  ///< committed GPU slots
    /// The paper's (2a) as printed: each task's pod slots times its pods, GPUs per pod and last checkpoint,
    /// and.
    literal,
    ///< evictions weighed with the pod slots
};

/// When and where every task runs.
struct SpotSchedule {
    std::vector<std::vector<std::vector<int>>> pods{};  ///< pods by [task][slot][node]
    bool operator==(const SpotSchedule&) const = default;
};

/// The value of a schedule, counted slot by slot.
struct SpotValue {
    std::vector<int> runs{};       ///< per task: its starts
    std::vector<int> committed{};  ///< per task: slots of run time at its last checkpoint
    double restarts = 0;           ///< numerator of the ratio
    double starts = 0;             ///< its denominator; 0 / 0 counts as 0
    double useful = 0;             ///< the second term before the division by GPUs and slots
    double objective = 0;          ///< restarts / starts - alpha * useful / (GPUs * slots)
};
template <class F>
constexpr void visit_fields(std::type_identity<SpotValue>, F&& field) {
    field("objective", &SpotValue::objective);
    field("restarts", &SpotValue::restarts);
    field("starts", &SpotValue::starts);
    field("useful", &SpotValue::useful);
    field("runs", &SpotValue::runs);
    field("committed", &SpotValue::committed);
}

/// The model of a spot scheduling problem.
///
/// Rows by group: `progress`, `stop`, `idle`, `start` (the state), `must start` (high priority), `gang`,
/// `stay`, `capacity` (placement), `ratio`; with `literal` also those of its copies, `choice`.
///
/// Size with `meaning`: let h_i = H - arrival_i, C_i the length, L_i the number of levels: "never started"
/// and all but the last checkpoint (1 for high priority), M nodes, nb = ceil(log2(Dmax + 1)), Dmax the sum
/// over tasks of pods * GPUs * (1 for high priority, else floor((H + 1) / 2)), [LP] = 1 except for high
/// priority, [HP] = 1 - [LP].
/// - columns: sum_i [h C + 2 h L + [LP] (h - 1) (C - 1) + M h] + 1 + 2 nb
/// - rows: sum_i [h C + 2 h L + [LP] (h - 1) (C - 1) + h + M (h - 1) + [HP]] + M * (slots in which some task
///   can run) + 2 + 2 nb
struct SpotModel : Model {
    SpotProblem problem{};
    SpotMode mode = SpotMode::meaning;
    /// Returns the schedule of a vector. @throws InvalidInput unless it has one entry per column
    [[nodiscard]] SpotSchedule decode(std::span<const double> values) const;
    /// Returns the vector of a schedule. @throws InvalidInput for a schedule that breaks the rules
    [[nodiscard]] std::vector<double> encode(const SpotSchedule& schedule) const;
};
template <class F>
constexpr void visit_fields(std::type_identity<SpotModel>, F&& field) {
    visit_fields(std::type_identity<Model>{}, field);
    field("problem", &SpotModel::problem);
    field("mode", &SpotModel::mode);
}

/// @throws InvalidInput with every field out of range
void validate(const SpotProblem& problem);

/// Computes the value of a schedule from its pods alone.
/// @throws InvalidInput for schedules of the wrong shape or against the rules: partial gangs, too many GPUs,
///     moves within a run, a restart in the slot of an eviction, high-priority tasks that start late or are
///     evicted
[[nodiscard]] SpotValue spot_value(const SpotProblem& problem, const SpotSchedule& schedule,
                                   SpotMode mode = SpotMode::meaning);

/// Builds the time-indexed model of spot scheduling; see SpotModel for its size. It is exact, without big
/// numbers in rows.
///
/// In a slot every task is idle, or runs with a known progress. An eviction takes effect at the start of a
/// slot, and resets the task to its last checkpoint. Pods stay in place during a run. Runs cut by the horizon
/// are not evictions. Source: appendix A, (2a) to (2g), of the ASI heterogeneity-at-hyperscale paper,
/// reformulated because the printed one multiplies decisions.
///
/// @throws InvalidInput with every field out of range
[[nodiscard]] SpotModel spot_schedule(const SpotProblem& problem, SpotMode mode = SpotMode::meaning);

}  // namespace gpusched::milp
