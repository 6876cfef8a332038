// SPDX-License-Identifier: Apache-2.0
// Options of admit(): the means that it may use, their prices, and limits.
#pragma once

#include <gpusched/admission/quotas.hpp>
#include <gpusched/allocation/any.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/preemption/options.hpp>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

namespace gpusched::admission {

/// The highest price, in seconds: about 30 years.
inline constexpr std::int64_t highest_price_s = 1'000'000'000;

/// Prices in seconds; costs are in GPU-seconds. The prices of moves, restarts and losses are multiplied by the
/// GPUs of the task. A task without GPUs counts as one GPU per 16 cores, and at least as 0.1 GPUs.
struct Prices {
    /// The price of a move, 0 to 10^9 s, times the task's `move_cost`.
    std::int64_t move_price_s = 30;
    /// The price of evicting a task that is placed again, 0 to 10^9 s, in addition to its lost work.
    std::int64_t restart_s = 300;
    /// The price of evicting a task that is not placed again, 0 to 10^9 s, in addition to its lost work.
    std::int64_t loss_s = 3600;
    /// The price of each GPU that a placed or moved task borrows from a Standby task, 0 to 10^9 s.
    std::int64_t recall_price_s = 60;
    /// The price of moving or evicting any task, 0 to 10^9 s of one GPU. If it is 1, all other prices are 0
    /// and `work` is false, the cost is the number of disturbed tasks.
    std::int64_t task_price_s = 0;
    /// Counts the work since a victim's last checkpoint as cost.
    bool work = true;
    /// The price of each eviction beyond a disruption budget, 0 to 10^9 s of one GPU. Absent = budgets are
    /// never exceeded. `verify::plan` rejects a plan that exceeds a budget.
    std::optional<std::int64_t> budget_price_s{};
};
template <class F>
constexpr void visit_fields(std::type_identity<Prices>, F&& field) {
    field("move_price_s", &Prices::move_price_s, within<std::int64_t>(0, highest_price_s));
    field("restart_s", &Prices::restart_s, within<std::int64_t>(0, highest_price_s));
    field("loss_s", &Prices::loss_s, within<std::int64_t>(0, highest_price_s));
    field("recall_price_s", &Prices::recall_price_s, within<std::int64_t>(0, highest_price_s));
    field("task_price_s", &Prices::task_price_s, within<std::int64_t>(0, highest_price_s));
    field("work", &Prices::work);
    field("budget_price_s", &Prices::budget_price_s, within<std::int64_t>(0, highest_price_s));
}

/// Options of the search, for experts.
struct SearchOptions {
    /// Nesting of displacements, 1 to 16. With 1, every displaced task goes to GPUs that are already free. If
    /// no plan is found, displacements nest up to 2 x depth - 1 deep.
    int depth = 3;
    /// Most steps (tried displacements and placements) per pod, >= 1. Beyond them the best plan so far is
    /// returned; if there is none, further passes may take twice as many.
    std::int64_t search_limit = 2000;
};
template <class F>
constexpr void visit_fields(std::type_identity<SearchOptions>, F&& field) {
    field("depth", &SearchOptions::depth, within(1, consolidation::most_depth));
    field("search_limit", &SearchOptions::search_limit, at_least(1));
}

/// Options of `admit`. Ranges are checked before the search starts.
struct Options {
    bool moves = true;      ///< allow moves of tasks to other nodes
    bool evictions = true;  ///< allow evictions of preemptible tasks with lower priority
    bool replace = true;    ///< place evicted tasks again, in the same plan, if that costs less
    bool standby = true;    ///< allow LP tasks on GPUs that Standby tasks lend

    std::optional<std::int64_t> max_moves{};      ///< most moves in the plan, >= 0
    std::optional<std::int64_t> max_evictions{};  ///< most evictions in the plan, >= 0
    /// The highest cost of the plan in GPU-seconds, >= 0.
    std::optional<std::int64_t> max_cost_s{};
    /// Most seconds, >= 0. When they have passed, the best plan so far is returned, and `stop_reason` is
    /// `time_limit`.
    std::optional<double> time_limit{};

    /// The network level at which the pods should be together, as for `allocate`.
    std::optional<Level> level{};
    /// `required`: all pods in one domain of `level`. `preferred`: together if that costs no more.
    std::optional<NetworkMode> mode{};
    /// Seconds, -10^12 to 10^12; absent = the time of the snapshot. Lost work is counted up to this time.
    std::optional<std::int64_t> now{};

    /// Additional constraint for pods and displaced tasks: may this task run on this node
    /// (allocation/filters.hpp)? It sees the snapshot. Absent = every node.
    std::optional<allocation::AnyFilter> filter{};
    /// Nodes that no task leaves and no displaced task enters. The job may use their idle GPUs.
    std::vector<NodeId> exempt{};
    /// Tasks that are neither moved nor evicted.
    std::vector<TaskId> spare{};
    /// Quotas of tenants. A job beyond a quota is rejected: moves and evictions do not free quota.
    std::vector<TenantQuota> quotas{};

    Prices prices{};                     ///< costs of moves and evictions
    consolidation::WaveLimits limits{};  ///< limits of every wave
    SearchOptions search{};              ///< options of the search, for experts
};

template <class F>
constexpr void visit_fields(std::type_identity<Options>, F&& field) {
    field("moves", &Options::moves);
    field("evictions", &Options::evictions);
    field("replace", &Options::replace);
    field("standby", &Options::standby);
    field("max_moves", &Options::max_moves, at_least(0));
    field("max_evictions", &Options::max_evictions, at_least(0));
    field("max_cost_s", &Options::max_cost_s, at_least(0));
    field("time_limit", &Options::time_limit, at_least(0));
    field("level", &Options::level, IsLevel{});
    field("mode", &Options::mode);
    field("now", &Options::now, any_signed_amount);
    field("exempt", &Options::exempt);
    field("spare", &Options::spare);
    field("quotas", &Options::quotas);
    field("prices", &Options::prices, Inlined{});
    field("limits", &Options::limits, Inlined{});
    field("search", &Options::search, Inlined{});
}

/// @throws InvalidInput with every field that is out of range or names a node or task that `cluster` does not
///     have
void validate(const Options& options, const Cluster& cluster);

}  // namespace gpusched::admission
