// SPDX-License-Identifier: Apache-2.0
// admit: lets a job in at the least cost, by placing, moving, evicting and borrowing, in one plan.
#pragma once

#include <gpusched/admission/options.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/stop_reason.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/preemption/preempt.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
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

/// Lets all pods of a job in, or none, at the least cost in GPU-seconds over all means together.
///
/// A job that does not fit can be let in by moving tasks elsewhere (make before break), by evicting tasks and placing them again,
/// by evicting them for good, and by borrowing what Standby tasks lend. One search decides on all of it, by the prices of
/// `Options`: for every node a lower bound on what it costs to displace enough for a pod, and an estimate that includes the places
/// of the displaced tasks; the nodes in the order of the estimates; on each the exact sets of tasks to displace; and for every
/// displaced task the cheapest of a free place, a place that others leave for it (nested up to `depth`), an eviction with a new
/// place, and an eviction without. Of jobs with several pods the pods come one after the other, and what was found is improved by
/// leaving out one of its nodes at a time.
///
/// Where the job fits as it is, the answer is that of `allocation::allocate`. A level that the job prefers is kept where that costs
/// no more. Who may move, and where to, is as for `consolidate` (`consolidation::make_scope`); nothing moves onto a node that was
/// empty before. Who may be evicted is as for `preempt`: a preemptible task of lower priority than every pod, neither locked,
/// standby nor a daemon. A gang that would fall below its `min_members` leaves whole, and is placed again whole or not at all.
/// Gangs of the pods themselves stay. Disruption budgets hold, unless they have a price. Moves and evictions make no room in a quota.
///
/// @param pods pending tasks, distinct, at least one; the cluster must hold no reservations
/// @return see Admission; the cluster is not changed. `verify::plan` accepts the plan, unless budgets were broken at a price or the
///     pods have local cores, which plans cannot be judged by
/// @throws InvalidInput as `allocate`, and for options out of range
/// O(nodes + tasks) and at most `search_limit` steps for each pod, and as many in all for a preferred level; each at most O(nodes)
/// and 2,000 sets of tasks; twice that where limits keep the job out, to find which. Deterministic unless a time limit or a cancellation strikes.
[[nodiscard]] Admission admit(const Cluster& cluster, std::span<const TaskId> pods,
                              const Options& options = {}, const Context& context = {});

/// The plan of `admit` with `evictions` off: moves that make room for all pods of a job, and where these go.
/// @return none where moves alone do not let the job in; `admit` says why
/// @throws InvalidInput as `admit`
[[nodiscard]] inline std::optional<Plan> make_room(const Cluster& cluster, std::span<const TaskId> pods,
                                                   Options options = {}, const Context& context = {}) {
    options.evictions = false;
    auto made = admit(cluster, pods, options, context);
    if (!made.admitted) return std::nullopt;
    return std::move(made.plan);
}

}  // namespace gpusched::admission
