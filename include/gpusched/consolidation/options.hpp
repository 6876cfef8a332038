// SPDX-License-Identifier: Apache-2.0
// Options of consolidation: preset, objective, limits of disruption, and the effort of the search.
#pragma once

#include <gpusched/consolidation/placement_rule.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

namespace gpusched::consolidation {

/// A set of policies; see `presets`.
enum class Preset : std::uint8_t {
    ipc,   ///< the paper's algorithm: random groups, fewest pods first, any victims
    fast,  ///< ours: pools per GPU model, least demand first, tightest fit through an index, one round
    best,  ///< ours: as fast, with more rounds, a deeper search, exchanges and an exact search of tiny groups
};

/// The weight of a vacated node.
enum class Objective : std::uint8_t {
    gpus,   ///< its GPUs; a node without GPUs gains nothing, but is still vacated if nothing is lost
    nodes,  ///< one
};

/// The method by which a bound is proved.
enum class BoundMethod : std::uint8_t { none, counting, lp };

/// The maximum of `SearchOptions::depth`.
inline constexpr int most_depth = 16;

/// The maximum of `Options::price` and `open_price`. No node is worth a move at a higher price.
inline constexpr std::int64_t highest_price = 1'000'000'000;

/// Options of the search, for experts.
struct SearchOptions {
    /// Nodes per group, >= 1, for partitioners that cut the cluster into groups. Pools per GPU model are not
    /// cut.
    std::size_t partition_size = 500;
    /// Nesting of moves in an ejection chain, 1 .. 16: 1 = direct placement only. `fast` uses at most 2.
    int depth = 3;
    /// Maximum number of rounds, >= 1. A round without gain is the last. `fast` makes one.
    int rounds = 5;
    /// Maximum number of tasks of other nodes that may move to vacate one node, >= 0. For `fast` and `best`
    /// it also limits the nesting of chains, so 0 = direct placement only.
    std::optional<std::int64_t> max_others{};
    /// Seconds of further searches with noise in the node order, >= 0; the best plan is kept. The plan then
    /// depends on the speed of the machine. Absent = none.
    std::optional<double> polish_time{};
    /// Bound that is proved on the best possible plan: counting takes milliseconds, lp seconds.
    BoundMethod bound_method = BoundMethod::counting;
    /// Every move names its chain and the vacated node that it serves. Plan files then have version 2.
    bool record_chains = false;
};
template <class F>
constexpr void visit_fields(std::type_identity<SearchOptions>, F&& field) {
    field("partition_size", &SearchOptions::partition_size, at_least(1));
    field("depth", &SearchOptions::depth, within(1, most_depth));
    field("rounds", &SearchOptions::rounds, at_least(1));
    field("max_others", &SearchOptions::max_others, at_least(0));
    field("polish_time", &SearchOptions::polish_time, at_least(0));
    field("bound_method", &SearchOptions::bound_method);
    field("record_chains", &SearchOptions::record_chains);
}

/// Limits of every wave.
struct WaveLimits {
    /// Maximum number of members of one job that move in one wave, >= 0, in addition to the jobs' own
    /// `max_disrupted`.
    std::optional<std::int64_t> max_disrupted{};
    /// Maximum number of moves in one wave, >= 1.
    std::optional<std::int64_t> max_moves_per_wave{};
    /// Maximum number of moves in one wave that leave or enter one node, >= 1.
    std::optional<std::int64_t> max_moves_per_node{};
};
template <class F>
constexpr void visit_fields(std::type_identity<WaveLimits>, F&& field) {
    field("max_disrupted", &WaveLimits::max_disrupted, at_least(0));
    field("max_moves_per_wave", &WaveLimits::max_moves_per_wave, at_least(1));
    field("max_moves_per_node", &WaveLimits::max_moves_per_node, at_least(1));
}

/// Options of `consolidate`. Every field has a default. Ranges are checked before the search begins.
struct Options {
    /// Set of policies: `ipc` (the paper's algorithm), `fast` or `best` (ours).
    Preset preset = Preset::best;
    /// Seed of random choices.
    std::uint64_t seed = 0;
    /// Number of groups that are solved at once; 0 = one per hardware thread. Ignored if the context has an
    /// executor. The plan does not depend on it.
    std::size_t threads = 0;
    /// Seconds, >= 0. When they have passed, the best plan so far is returned with its `stop_reason`.
    std::optional<double> time_limit{};
    /// Maximum number of moves in the plan, >= 0.
    std::optional<std::int64_t> max_moves{};
    /// Maximum cost of the moves in the plan (sum of the tasks' `move_cost`), >= 0.
    std::optional<std::int64_t> max_move_cost{};
    /// Price of a move, in thousandths of a GPU (of a node, with objective `nodes`) for each unit of the
    /// task's `move_cost`, 0 .. 10^9. Only nodes that are worth their moves are vacated. 0 = as many as
    /// possible.
    std::int64_t price = 0;
    /// Price of opening a node, that is of moving tasks onto a node that held daemons at most before the
    /// plan, in thousandths of the weight of vacating it, 0 .. 10^9. Below 1000 only with `clear`: else a
    /// node could be vacated onto an equal empty one for a gain. Absent = nothing moves onto such nodes.
    std::optional<std::int64_t> open_price{};
    /// Only members beyond a job's `min_members` may move. Locked members count towards `min_members` first.
    bool protect_core_members = false;

    /// Number of empty nodes, or of slots, to reach: the search ends there and vacates no more than that
    /// takes. `price` is then the lowest price that the search accepts, in thousandths of an empty node or
    /// slot. Absent = as much as possible. Cannot be combined with `ipc`, policies of your own, `objective`
    /// and `polish_time`.
    std::optional<Goal> goal{};
    /// Weight of a vacated node: its GPUs, or one.
    Objective objective = Objective::gpus;
    /// Only these nodes are vacated, and nothing moves onto them; absent = any node may be vacated. No node
    /// may also be in `exempt`.
    std::optional<std::vector<NodeId>> clear{};
    /// Nothing leaves these nodes and nothing moves onto them.
    std::vector<NodeId> exempt{};
    /// Additional constraint: may this task come to this node? See placement_rule.hpp.
    AnyPlacementRule rule{};

    WaveLimits limits{};     ///< limits of every wave
    SearchOptions search{};  ///< options of the search, for experts
};

template <class F>
constexpr void visit_fields(std::type_identity<Options>, F&& field) {
    field("preset", &Options::preset);
    field("seed", &Options::seed);
    field("threads", &Options::threads);
    field("time_limit", &Options::time_limit, at_least(0));
    field("max_moves", &Options::max_moves, at_least(0));
    field("max_move_cost", &Options::max_move_cost, at_least(0));
    field("price", &Options::price, within<std::int64_t>(0, highest_price));
    field("open_price", &Options::open_price, within<std::int64_t>(0, highest_price));
    field("protect_core_members", &Options::protect_core_members);
    field("goal", &Options::goal);
    field("objective", &Options::objective);
    field("clear", &Options::clear);
    field("exempt", &Options::exempt);
    field("limits", &Options::limits, Inlined{});
    field("search", &Options::search, Inlined{});
}

/// Checks options.
/// @throws InvalidInput that lists every field out of range, unknown nodes and GPU models, nodes in both
///     `clear` and `exempt`, an `open_price` below 1000 without `clear`, and options that `goal` excludes
void validate(const Options& options, const Cluster& cluster);

/// Returns the goal with the GPU model's name in the cluster, for a name that `matching_gpu_models` finds.
/// @throws InvalidInput for a GPU model or a task that the cluster does not have
[[nodiscard]] Goal with_full_names(const Cluster& cluster, const Goal& goal);

/// Returns the nodes that count for a goal, as `Goal` says, ascending. If a goal is out of reach, compare
/// them with the vacated nodes: taints may exclude nodes.
/// @throws InvalidInput for a GPU model or a task that the cluster does not have
/// O(nodes); deterministic, thread-safe.
[[nodiscard]] std::vector<NodeId> goal_nodes(const Cluster& cluster, const Goal& goal);

namespace detail {
/// Checks options together with policies of the caller's own; see `validate` in policies.hpp.
/// @param takes_limits whether their acceptance takes `max_others` and `price`
void validate_with_policies(const Options& options, const Cluster& cluster, bool takes_limits);
}  // namespace detail

}  // namespace gpusched::consolidation
