// SPDX-License-Identifier: Apache-2.0
// What admission returns: one plan, its cost by parts, what is proved about every other plan, and what binds where there is none.
#pragma once

#include <gpusched/core/budget.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/preemption/preempt.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::admission {

/// What a plan costs by parts, in thousandths of a GPU-second. A part of one task stops at 7.0 * 10^10 GPU-seconds.
struct Cost {
    std::int64_t moves = 0;      ///< `move_price_s`
    std::int64_t lost_work = 0;  ///< work since the last checkpoints of all evicted tasks
    std::int64_t restarts = 0;   ///< `restart_s` of evicted tasks that are placed again
    std::int64_t losses = 0;     ///< `loss_s` of the other evicted tasks
    std::int64_t tasks = 0;      ///< `task_price_s`
    std::int64_t recalls = 0;    ///< `recall_price_s`
    std::int64_t budgets = 0;    ///< `budget_price_s`
    [[nodiscard]] std::int64_t total() const noexcept {
        return moves + lost_work + restarts + losses + tasks + recalls + budgets;
    }
    bool operator==(const Cost&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Cost>, F&& field) {
    field("moves", &Cost::moves);
    field("lost_work", &Cost::lost_work);
    field("restarts", &Cost::restarts);
    field("losses", &Cost::losses);
    field("tasks", &Cost::tasks);
    field("recalls", &Cost::recalls);
    field("budgets", &Cost::budgets);
}

/// How the search went. The counters do not depend on the machine. Where limits keep the job out, steps and sets include those of the
/// search that finds which.
struct Statistics {
    std::int64_t steps = 0;  ///< displacements and placements that were tried
    std::int64_t sets_checked =
        0;  ///< sets of tasks that were looked at: would the other task fit without them?
    std::int64_t plans_found = 0;  ///< complete plans
    std::int64_t unorderable = 0;  ///< of these, refused since their moves wait for each other in a circle
    std::int64_t domains_considered = 0;  ///< domains of the required level that were searched; else 1
    bool operator==(const Statistics&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Statistics>, F&& field) {
    field("steps", &Statistics::steps);
    field("sets_checked", &Statistics::sets_checked);
    field("plans_found", &Statistics::plans_found);
    field("unorderable", &Statistics::unorderable);
    field("domains_considered", &Statistics::domains_considered);
}

/// The answer of `admit`.
struct Admission {
    bool admitted = false;
    /// Evictions, waves of moves, and the placements of all pods and of the victims that run again; empty unless admitted.
    Plan plan{};
    Cost cost{};
    /// No way of letting the job in within the limits of the options costs less, in thousandths of a GPU-second. Absent: there is
    /// no such way.
    std::optional<std::int64_t> bound{};
    /// The plan costs no more than the bound; without a plan: there is no way within the limits.
    bool proven = false;
    std::vector<Placement> pods{};  ///< in the order given; empty unless admitted
    std::vector<TaskId> lost{};     ///< evicted and not placed again, ascending
    std::vector<preemption::BrokenBudget>
        broken_budgets{};  ///< ascending; none unless `Options::budget_price_s`
    /// Without a plan: what binds for the pod that came closest, with everybody gone who may leave; `gpu` or another resource
    /// also where tasks may leave but find no place, and where a quota refuses the job.
    Obstacle obstacle = Obstacle::none;
    std::string reason{};  ///< the same in words; empty when admitted
    Statistics stats{};
    StopReason stop_reason = StopReason::completed;

    /// Who moves to another node, in the order of the plan.
    [[nodiscard]] std::vector<TaskId> moved() const {
        std::vector<TaskId> tasks;
        for (const auto& move : plan.moves) tasks.push_back(move.task);
        return tasks;
    }
    /// Who is evicted, whether or not it is placed again.
    [[nodiscard]] const std::vector<TaskId>& evicted() const noexcept { return plan.evictions; }
};

}  // namespace gpusched::admission
