// SPDX-License-Identifier: Apache-2.0
// Options of admission: by which means room is made, what each costs, what is limited, and who is left alone.
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

/// No price may be higher, in seconds: about 30 years.
inline constexpr std::int64_t highest_price_s = 1'000'000'000;

/// How `admit` works. Ranges are checked first thing.
///
/// Prices are in seconds; what a plan costs is in GPU-seconds. A task without GPUs counts as one GPU per 16 cores, and as a
/// tenth of a GPU at least.
struct Options {
    bool moves = true;      ///< tasks may move to another node
    bool evictions = true;  ///< tasks of lower priority may be evicted
    bool replace = true;    ///< evicted tasks may be placed again in the same plan
    bool standby = true;    ///< LP tasks may be placed on what Standby tasks lend

    /// Of a move: so many seconds of the task's GPUs, times its `move_cost`, 0 .. 10^9.
    std::int64_t move_price_s = 30;
    /// Of an eviction that is followed by a placement: so many seconds of the task's GPUs, on top of the work since its last
    /// checkpoint, 0 .. 10^9.
    std::int64_t restart_s = 300;
    /// Of an eviction without a placement, likewise, 0 .. 10^9.
    std::int64_t loss_s = 3600;
    /// Of each GPU that a placed or moved task borrows from a Standby task, 0 .. 10^9.
    std::int64_t recall_price_s = 60;
    /// Of every task that is moved or evicted, as seconds of one GPU, 0 .. 10^9. With this at 1 and all other prices at 0, and no
    /// work to lose (`work` false), the cost is the number of disturbed tasks.
    std::int64_t task_price_s = 0;
    /// The work since a victim's last checkpoint counts.
    bool work = true;
    /// Of each task that evictions take down beyond what a disruption budget allows, as seconds of one GPU, 0 .. 10^9. Absent: no
    /// budget is ever broken. A plan that breaks one is refused by `verify::plan`.
    std::optional<std::int64_t> budget_price_s{};

    std::optional<std::int64_t> max_moves{};      ///< most moves in the plan, >= 0
    std::optional<std::int64_t> max_evictions{};  ///< most evictions in the plan, >= 0
    /// Most GPU-seconds that the plan may cost, >= 0.
    std::optional<std::int64_t> max_cost_s{};
    /// Most members of one job that move in one wave, >= 0, on top of the jobs' own `max_disrupted`.
    std::optional<std::int64_t> max_disrupted{};
    std::optional<std::int64_t> max_moves_per_wave{};  ///< most moves in one wave, >= 1
    std::optional<std::int64_t>
        max_moves_per_node{};  ///< most moves that leave or enter one node in one wave, >= 1
    /// Nesting of displacements, 1 .. 16: 1 = every displaced task goes where there is room as it is.
    int depth = 3;
    /// Most steps of the search for each pod, >= 1: displacements that are tried. Beyond them the best plan so far is returned.
    std::int64_t search_limit = 2000;
    /// Seconds, >= 0. A guard: the best found until then is returned, and `stop_reason` says so.
    std::optional<double> time_limit{};

    /// Where the job's closeness is measured, as for `allocate`.
    std::optional<Level> level{};
    /// `required`: one domain of `level`, or not admitted. A wish (`preferred`) is kept where that costs no more.
    std::optional<NetworkMode> mode{};
    /// Seconds, -10^12 .. 10^12; absent = the snapshot's. Work is lost up to this time.
    std::optional<std::int64_t> now{};

    /// May a task come to a node, asked of the pods and of whoever is displaced, with the snapshot as it is, on top of all constraints of
    /// the cluster (allocation/filters.hpp). Absent: everywhere.
    std::optional<allocation::AnyFilter> filter{};
    /// Nothing leaves these nodes and nothing moves onto them; the job may use what is idle there.
    std::vector<NodeId> exempt{};
    /// These tasks are neither moved nor evicted.
    std::vector<TaskId> spare{};
    /// A job beyond one of these is not admitted: neither moves nor evictions make room in a quota.
    std::vector<TenantQuota> quotas{};
};

template <class F>
constexpr void visit_fields(std::type_identity<Options>, F&& field) {
    field("moves", &Options::moves);
    field("evictions", &Options::evictions);
    field("replace", &Options::replace);
    field("standby", &Options::standby);
    field("move_price_s", &Options::move_price_s, within<std::int64_t>(0, highest_price_s));
    field("restart_s", &Options::restart_s, within<std::int64_t>(0, highest_price_s));
    field("loss_s", &Options::loss_s, within<std::int64_t>(0, highest_price_s));
    field("recall_price_s", &Options::recall_price_s, within<std::int64_t>(0, highest_price_s));
    field("task_price_s", &Options::task_price_s, within<std::int64_t>(0, highest_price_s));
    field("work", &Options::work);
    field("budget_price_s", &Options::budget_price_s, within<std::int64_t>(0, highest_price_s));
    field("max_moves", &Options::max_moves, at_least(0));
    field("max_evictions", &Options::max_evictions, at_least(0));
    field("max_cost_s", &Options::max_cost_s, at_least(0));
    field("max_disrupted", &Options::max_disrupted, at_least(0));
    field("max_moves_per_wave", &Options::max_moves_per_wave, at_least(1));
    field("max_moves_per_node", &Options::max_moves_per_node, at_least(1));
    field("depth", &Options::depth, within(1, consolidation::most_depth));
    field("search_limit", &Options::search_limit, at_least(1));
    field("time_limit", &Options::time_limit, at_least(0));
    field("level", &Options::level, IsLevel{});
    field("mode", &Options::mode);
    field("now", &Options::now, any_signed_amount);
    field("exempt", &Options::exempt);
    field("spare", &Options::spare);
    field("quotas", &Options::quotas);
}

/// @throws InvalidInput with every field that is out of range or names a node or task that `cluster` does not have
void validate(const Options& options, const Cluster& cluster);

}  // namespace gpusched::admission
