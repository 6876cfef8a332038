// SPDX-License-Identifier: Apache-2.0
// admit() and make_room(): admit a job at the lowest cost by placing, moving, evicting and borrowing.
#pragma once

#include <gpusched/admission/options.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
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

/// The cost of a plan by parts, in thousandths of a GPU-second. The part of one task is at most 7.0 * 10^10
/// GPU-seconds.
struct Cost {
    std::int64_t moves = 0;      ///< moves, by `move_price_s`
    std::int64_t lost_work = 0;  ///< work of evicted tasks since their last checkpoints
    std::int64_t restarts = 0;   ///< evicted tasks that are placed again, by `restart_s`
    std::int64_t losses = 0;     ///< other evicted tasks, by `loss_s`
    std::int64_t tasks = 0;      ///< moved and evicted tasks, by `task_price_s`
    std::int64_t recalls = 0;    ///< borrowed GPUs, by `recall_price_s`
    std::int64_t budgets = 0;    ///< evictions beyond budgets, by `budget_price_s`
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

/// Counters of the search; they do not depend on the machine. Steps and sets include repeated searches, also
/// the one that finds the limits that prevent the admission.
struct Statistics {
    std::int64_t steps = 0;  ///< tried displacements and placements
    std::int64_t sets_checked =
        0;                         ///< sets of tasks that were checked: does the other task fit without them?
    std::int64_t plans_found = 0;  ///< complete plans
    std::int64_t unorderable = 0;  ///< of these, rejected: no order of their moves keeps the limits
    std::int64_t domains_considered = 0;  ///< searches by domain of the required level; else 1
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

/// The result of `admit`.
struct Admission {
    bool admitted = false;
    /// Evictions, waves of moves, and placements of all pods and of victims that are placed again; empty
    /// unless admitted.
    Plan plan{};
    Cost cost{};
    /// Lower bound: no plan within the limits of the options costs less, in thousandths of a GPU-second.
    /// Plans with moves onto empty nodes count only if the plan has one. Absent = no plan exists.
    std::optional<std::int64_t> bound{};
    /// The cost equals the bound; without a plan: no plan exists within the limits.
    bool proven = false;
    std::vector<Placement> pods{};  ///< in the given order; empty unless admitted
    std::vector<TaskId> lost{};     ///< evicted tasks that are not placed again, ascending
    /// Ascending; empty unless `Prices::budget_price_s`.
    std::vector<preemption::BrokenBudget> broken_budgets{};
    /// Without a plan: the resource of the quota that rejects the job; if some pod fits on no node, the
    /// obstacle on the closest node after all displaceable tasks leave; else the obstacle that `allocate`
    /// reports.
    Obstacle obstacle = Obstacle::none;
    std::string reason{};  ///< in words; empty if admitted
    Statistics stats{};
    StopReason stop_reason = StopReason::completed;

    /// Tasks that move to another node, in the order of the plan.
    [[nodiscard]] std::vector<TaskId> moved() const {
        std::vector<TaskId> tasks;
        for (const auto& move : plan.moves) tasks.push_back(move.task);
        return tasks;
    }
    /// Tasks that are evicted, including tasks that are placed again.
    [[nodiscard]] const std::vector<TaskId>& evicted() const noexcept { return plan.evictions; }
};

/// Admits all pods of a job, or none, at the lowest cost in GPU-seconds that it finds.
///
/// If the job fits as it is, the result is that of `allocation::allocate`. Otherwise one search combines all
/// means by the prices of `Options`: moving tasks (make before break), evicting tasks and placing them again,
/// evicting tasks for good, and borrowing from Standby tasks. It visits the nodes in the order of an
/// estimated cost and enumerates the sets of tasks to displace. Each displaced task gets the cheapest of a
/// free place, a place that other tasks leave (nested up to `depth`), and the two kinds of eviction. The pods
/// of a job are placed in sequence; then the plan is improved by excluding one of its nodes at a time. Without
/// a plan or a proof, the search is repeated without some of these means, so that an additional means never
/// prevents an admission.
///
/// Tasks may move as for `consolidate` (`consolidation::make_scope`), and onto nodes that were empty only if
/// no other plan was found. Tasks may be evicted as for `preempt`, if their priority is lower than that of
/// every pod. A gang that would fall below its `min_members` is evicted as a whole, and is placed again as a
/// whole or not at all. The gangs of the pods stay intact. Disruption budgets hold unless they have a price. A
/// preferred level is kept if that costs no more.
///
/// @param pods pending tasks, distinct, at least one; the cluster must hold no reservations
/// @return see Admission; the cluster is not changed. `verify::plan` accepts the plan, except if it exceeds
///     budgets at a price or the pods have local cores, which plans do not describe
/// @throws InvalidInput as `allocate`, and for options out of range
/// O(nodes + tasks) plus the steps: at most `search_limit` for each pod, and as many in total again for a
/// preferred level. A step is O(nodes) and checks at most 2,000 sets of tasks. Without a plan or a proof,
/// at most 19 searches with fewer means follow, and then as many with moves onto empty nodes. If limits prevent
/// the admission, another search names them. Deterministic unless a time limit or a cancellation ends the
/// search.
[[nodiscard]] Admission admit(const Cluster& cluster, std::span<const TaskId> pods,
                              const Options& options = {}, const Context& context = {});

/// Admits a job by moves only: the plan of `admit` without evictions.
/// @return absent if moves alone do not admit the job; `admit` gives the reason
/// @throws InvalidInput as `admit`
[[nodiscard]] inline std::optional<Plan> make_room(const Cluster& cluster, std::span<const TaskId> pods,
                                                   Options options = {}, const Context& context = {}) {
    options.evictions = false;
    auto made = admit(cluster, pods, options, context);
    if (!made.admitted) return std::nullopt;
    return std::move(made.plan);
}

}  // namespace gpusched::admission
