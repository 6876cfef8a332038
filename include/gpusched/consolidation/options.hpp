// SPDX-License-Identifier: Apache-2.0
// Options of consolidation: which preset, how hard to search, what may be disturbed.
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

/// Which set of policies runs; see presets.hpp.
enum class Preset : std::uint8_t {
    ipc,   ///< the paper's algorithm: random groups, fewest pods first, any victims
    fast,  ///< ours: pools per GPU model, tightest fit through an index, least demand first, one round
    best,  ///< ours: the same with several rounds, a deeper search and exchanges, and an exact one where the group is tiny
};
constexpr auto enum_names(Preset) {
    return name_table<Preset>({
        {Preset::ipc, "ipc"},
        {Preset::fast, "fast"},
        {Preset::best, "best"},
    });
}

/// What a vacated node is worth.
enum class Objective : std::uint8_t {
    gpus,  ///< its GPUs (a node without GPUs counts as nothing gained, but is still vacated when nothing is lost)
    nodes,  ///< one
};
constexpr auto enum_names(Objective) {
    return name_table<Objective>({
        {Objective::gpus, "gpus"},
        {Objective::nodes, "nodes"},
    });
}

/// Which bound is proved alongside the plan.
enum class BoundMethod : std::uint8_t { none, counting, lp };
constexpr auto enum_names(BoundMethod) {
    return name_table<BoundMethod>({
        {BoundMethod::none, "none"},
        {BoundMethod::counting, "counting"},
        {BoundMethod::lp, "lp"},
    });
}

/// The deepest nesting of moves that a search may be asked for.
inline constexpr int most_depth = 16;

/// The highest `Options::price` and `open_price`: beyond it no node is worth a move.
inline constexpr std::int64_t highest_price = 1'000'000'000;

/// How `consolidate` works. Every field has a default; ranges are checked first thing.
struct Options {
    /// Which set of policies runs: `ipc` (the paper's algorithm), `fast` or `best` (ours).
    Preset preset = Preset::best;
    /// Nodes per group for partitioners that cut the cluster into groups, >= 1. Pools per GPU model are not cut.
    std::size_t partition_size = 500;
    /// Nesting of moves in an ejection chain, 1 .. 16: 1 = direct placement only. `fast` never nests deeper than 2.
    int depth = 3;
    /// Most rounds, >= 1. A round that gains nothing is the last. `fast` never makes more than one.
    int rounds = 5;
    /// Where random choices start.
    std::uint64_t seed = 0;
    /// How many groups are solved at once; 0 = one per hardware thread. Ignored when the context has an executor.
    /// The plan does not depend on it.
    std::size_t threads = 0;
    /// Seconds, >= 0. A guard: what was found until then is returned, and `stop_reason` says so.
    std::optional<double> time_limit{};
    /// Seconds of further searches with noise in the node order, >= 0; the best plan is kept. The plan then depends on
    /// the machine's speed. Absent = none: presets end by themselves.
    std::optional<double> polish_time{};

    /// Most moves in the plan, >= 0.
    std::optional<std::int64_t> max_moves{};
    /// Most move cost in the plan (sum of the tasks' `move_cost`), >= 0.
    std::optional<std::int64_t> max_move_cost{};
    /// Most tasks of other nodes that may move to vacate one node, >= 0. `fast` and `best` nest chains no deeper than so many
    /// moves, so 0 = direct placement only.
    std::optional<std::int64_t> max_others{};
    /// What a move costs, in thousandths of a GPU (of a node, with objective `nodes`) for each unit of the task's `move_cost`,
    /// 0 .. 10^9. A node is vacated only where it is worth its moves. 0 = as much as possible.
    std::int64_t price = 0;
    /// What it costs to move tasks onto a node that held none but daemons before the plan, in thousandths of what vacating that node would be
    /// worth, 0 .. 10^9: 1000 = as much. Beside `clear` also below 1000; elsewhere a node could be vacated onto an empty one like it, and
    /// count as gained. Absent = nothing moves onto such nodes.
    std::optional<std::int64_t> open_price{};
    /// Most members of one job that move in one wave, >= 0, on top of the jobs' own `max_disrupted`.
    std::optional<std::int64_t> max_disrupted{};
    /// Most moves in one wave, >= 1.
    std::optional<std::int64_t> max_moves_per_wave{};
    /// Most moves that leave or enter one node in one wave, >= 1.
    std::optional<std::int64_t> max_moves_per_node{};
    /// Only members beyond a job's `min_members` may move. Locked members count towards the core first.
    bool protect_core_members = false;

    /// Every move says which chain it belongs to, and which vacated node it serves. Plan files are of version 2 then.
    bool record_chains = false;

    /// What there is to be afterwards, so many empty nodes or slots: the search ends there, and vacates no more than that takes.
    /// `price` is then the lowest price, in thousandths of an empty node or slot, that it goes down to. Absent = as much as possible.
    /// Not beside `ipc`, policies of your own, an `objective` or a `polish_time`.
    std::optional<Goal> goal{};
    /// What a vacated node is worth: its GPUs, or one.
    Objective objective = Objective::gpus;
    /// What is proved about the best possible plan; costs milliseconds (counting) or seconds (lp).
    BoundMethod bound_method = BoundMethod::counting;

    /// Only these nodes are vacated, and nothing moves onto them; absent = any node may be vacated. None of them in `exempt`.
    std::optional<std::vector<NodeId>> clear{};
    /// Nothing leaves these nodes and nothing moves onto them.
    std::vector<NodeId> exempt{};
    /// A constraint of the caller's own on where tasks may go (placement_rule.hpp), on top of those of the cluster; none = no further one.
    AnyPlacementRule rule{};
};

template <class F>
constexpr void visit_fields(std::type_identity<Options>, F&& field) {
    field("preset", &Options::preset);
    field("partition_size", &Options::partition_size, at_least(1));
    field("depth", &Options::depth, within(1, most_depth));
    field("rounds", &Options::rounds, at_least(1));
    field("seed", &Options::seed);
    field("threads", &Options::threads);
    field("time_limit", &Options::time_limit, at_least(0));
    field("polish_time", &Options::polish_time, at_least(0));
    field("max_moves", &Options::max_moves, at_least(0));
    field("max_move_cost", &Options::max_move_cost, at_least(0));
    field("max_others", &Options::max_others, at_least(0));
    field("price", &Options::price, within<std::int64_t>(0, highest_price));
    field("open_price", &Options::open_price, within<std::int64_t>(0, highest_price));
    field("max_disrupted", &Options::max_disrupted, at_least(0));
    field("max_moves_per_wave", &Options::max_moves_per_wave, at_least(1));
    field("max_moves_per_node", &Options::max_moves_per_node, at_least(1));
    field("protect_core_members", &Options::protect_core_members);
    field("record_chains", &Options::record_chains);
    field("goal", &Options::goal);
    field("objective", &Options::objective);
    field("bound_method", &Options::bound_method);
    field("clear", &Options::clear);
    field("exempt", &Options::exempt);
}

/// @throws InvalidInput with every field that is out of range or names a node or GPU model that `cluster` does not have, every
///     node that is both in `clear` and in `exempt`, an `open_price` below 1000 without `clear`, and what has no effect beside a
///     `goal`
void validate(const Options& options, const Cluster& cluster);

namespace detail {
/// The same, and what has no effect beside policies of the caller's own; see `validate` in policies.hpp.
void validate_beside_policies(const Options& options, const Cluster& cluster, bool takes_limits);
}  // namespace detail

}  // namespace gpusched::consolidation
