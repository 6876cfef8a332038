// SPDX-License-Identifier: Apache-2.0
// Plan: evictions, moves in waves and placements, with the goal that it serves.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/model/spec.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched {

/// What a task of one shape takes of a node: a slot for it. At least one amount is above 0.
struct SlotShape {
    int gpu_count = 0;            ///< whole GPUs, 0 .. 64
    std::int64_t cpu_milli = 0;   ///< thousandths of a core, >= 0
    std::int64_t memory_mib = 0;  ///< MiB of memory, >= 0
    bool operator==(const SlotShape&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<SlotShape>, F&& field) {
    field("gpu_count", &SlotShape::gpu_count, UnlessDefault{}, within(0, max_gpus_per_node));
    field("cpu_milli", &SlotShape::cpu_milli, UnlessDefault{}, at_least(0));
    field("memory_mib", &SlotShape::memory_mib, UnlessDefault{}, at_least(0));
}

/// So many empty nodes, or so many slots: exactly one of the two. What is there already counts.
///
/// Nodes that count are not cordoned, and open to whoever is to use them: to the task `usable_by`, or without one to tasks that
/// tolerate no more than the taints (NoSchedule, NoExecute) that all nodes of that GPU model have which are not cordoned. Empty nodes
/// count where they have a GPU that works, in a cluster without GPUs everywhere.
struct Goal {
    /// How many nodes hold no task but daemons, >= 1.
    std::optional<std::int64_t> empty_nodes{};
    /// Slots of this shape, in what is idle on each node.
    std::optional<SlotShape> slots{};
    /// How many slots, >= 1; absent = 1. Only beside `slots`.
    std::optional<std::int64_t> count{};
    /// On nodes of this GPU model only; empty = on any.
    std::string gpu_model{};
    /// On nodes where this task of the cluster may run, by its GPU models, node selector, node affinity and tolerations; empty = see above.
    std::string usable_by{};
    bool operator==(const Goal&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Goal>, F&& field) {
    field("empty_nodes", &Goal::empty_nodes, at_least(1));
    field("slots", &Goal::slots);
    field("count", &Goal::count, at_least(1));
    field("gpu_model", &Goal::gpu_model, UnlessDefault{});
    field("usable_by", &Goal::usable_by, UnlessDefault{});
}

/// How a move is carried out.
enum class MoveMode : std::uint8_t {
    copy,  ///< make before break: the task holds both places until its wave ends
    restart,  ///< break before make: its old place is free when its wave starts, and it is down until the wave ends
};
constexpr auto enum_names(MoveMode) {
    return name_table<MoveMode>({
        {MoveMode::copy, "copy"},
        {MoveMode::restart, "restart"},
    });
}

/// How a task that can move so is moved; Mobility::none is not for it.
[[nodiscard]] constexpr MoveMode move_mode(Mobility how) noexcept {
    return how == Mobility::copy ? MoveMode::copy : MoveMode::restart;
}

/// One migration. All moves of a wave take their destination while every source of that wave is still held, but for those of
/// tasks that restart.
struct Move {
    TaskId task = none<TaskId>;
    NodeId from = none<NodeId>;
    NodeId to = none<NodeId>;
    GpuMask gpus = 0;  ///< GPUs on `to`
    std::uint32_t wave = 0;
    MoveMode how = MoveMode::copy;
    std::uint32_t chain = no_chain;  ///< moves of one ejection chain are worth something only together
    NodeId serves = none<NodeId>;    ///< the vacated node that it helps to vacate; none = it is not said
    static constexpr std::uint32_t no_chain = 0xFFFFFFFFu;  ///< it is not said
    bool operator==(const Move&) const = default;
};

/// A pending task that starts after the last wave.
struct Placement {
    TaskId task = none<TaskId>;
    NodeId node = none<NodeId>;
    GpuMask gpus = 0;
    bool operator==(const Placement&) const = default;
};

/// What was proved about every final placement that satisfies the constraints: of what is vacated, less the empty nodes that it opens.
struct Bound {
    std::int64_t occupied_nodes_at_least = 0;
    std::int64_t vacated_nodes_at_most = 0;
    std::int64_t vacated_gpus_at_most = 0;
    std::string method{};  ///< "counting" or "lp"; empty = nothing was computed
    /// Where moves have a price: the most that any plan can be worth at that price, in thousandths, as `value_milli` of the statistics.
    std::optional<std::int64_t> value_at_most{};
    bool operator==(const Bound&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Bound>, F&& field) {
    field("occupied_nodes_at_least", &Bound::occupied_nodes_at_least);
    field("vacated_nodes_at_most", &Bound::vacated_nodes_at_most);
    field("vacated_gpus_at_most", &Bound::vacated_gpus_at_most);
    field("method", &Bound::method);
    field("value_at_most", &Bound::value_at_most, Since{2});
}

/// The parts of what a plan costs, in the order in which they are written: those of `admission::Cost`.
inline constexpr std::array<std::string_view, 7> cost_part_names{"moves", "lost_work", "restarts", "losses",
                                                                 "tasks", "recalls",   "budgets"};
/// The mark of a field that holds such parts by name, each at least 0.
struct CostParts {};

/// What to do with a snapshot. Evictions come first, then waves 0 .. waves - 1, then placements: of those that are possible the
/// first, again and again.
///
/// A task is the logical replica: what replaces it after a restart or an eviction, under a new name perhaps, is the same task.
/// So one that is evicted may be among the placements: it runs again there.
struct Plan {
    std::uint32_t waves = 0;
    std::vector<Move> moves{};            ///< by ascending wave
    std::vector<NodeId> vacated_nodes{};  ///< nodes with a non-daemon task before and none after, ascending
    std::vector<TaskId> evictions{};
    std::vector<Placement> placements{};
    Bound bound{};
    std::vector<NodeId>
        opened_nodes{};  ///< nodes that moves lead to, and that held no task but daemons before, ascending
    std::optional<Goal> goal{};          ///< what the plan was made for
    std::optional<bool> goal_reached{};  ///< beside a goal: whether that is there once the plan is done
    std::optional<std::int64_t>
        price{};  ///< of a move, in thousandths of a GPU, that the plan was made at; absent: moves were free
    bool operator==(const Plan&) const = default;
};

/// The same with names, as in `gpusched.plan` files; what checkers read.
struct PlanSpec {
    struct Move {
        std::string task{}, from{}, to{};
        std::vector<int> gpus{};
        std::int64_t wave = 0;
        MoveMode how = MoveMode::copy;
        std::optional<std::int64_t> chain{};
        std::string serves{};  ///< empty = it is not said
        bool operator==(const Move&) const = default;
    };
    struct Placement {
        std::string task{}, node{};
        std::vector<int> gpus{};
        bool operator==(const Placement&) const = default;
    };
    std::int64_t waves = 0;
    std::vector<Move> moves{};
    std::vector<std::string> vacated_nodes{};
    std::vector<std::string> evictions{};
    std::vector<Placement> placements{};
    std::map<std::string, double> stats{};
    Bound bound{};
    std::vector<std::string> opened_nodes{};
    std::optional<Goal> goal{};
    std::optional<bool> goal_reached{};
    std::optional<std::int64_t> price{};
    /// What the plan costs by parts, in GPU-seconds, where the algorithm that made it counts that; empty = it is not said.
    std::map<std::string, double> cost{};
    bool operator==(const PlanSpec&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<PlanSpec::Move>, F&& field) {
    field("task", &PlanSpec::Move::task, Required{});
    field("from", &PlanSpec::Move::from, Required{});
    field("to", &PlanSpec::Move::to, Required{});
    field("gpus", &PlanSpec::Move::gpus, within(0, max_gpus_per_node - 1), NewerAbove{15, 2});
    field("wave", &PlanSpec::Move::wave, Required{}, within<std::int64_t>(0, UINT32_MAX));
    field("how", &PlanSpec::Move::how, UnlessDefault{}, Since{2});
    field("chain", &PlanSpec::Move::chain, Since{2}, within<std::int64_t>(0, UINT32_MAX - 1));
    field("for", &PlanSpec::Move::serves, UnlessDefault{}, Since{2});
}
template <class F>
constexpr void visit_fields(std::type_identity<PlanSpec::Placement>, F&& field) {
    field("task", &PlanSpec::Placement::task, Required{});
    field("node", &PlanSpec::Placement::node, Required{});
    field("gpus", &PlanSpec::Placement::gpus, within(0, max_gpus_per_node - 1), NewerAbove{15, 2});
}
template <class F>
constexpr void visit_fields(std::type_identity<PlanSpec>, F&& field) {
    field("waves", &PlanSpec::waves, Required{}, within<std::int64_t>(0, UINT32_MAX));
    field("moves", &PlanSpec::moves, Required{});
    field("vacated_nodes", &PlanSpec::vacated_nodes, Required{});
    field("evictions", &PlanSpec::evictions);
    field("placements", &PlanSpec::placements);
    field("stats", &PlanSpec::stats);
    field("bound", &PlanSpec::bound);
    field("opened_nodes", &PlanSpec::opened_nodes, UnlessDefault{}, Since{2});
    field("goal", &PlanSpec::goal, Since{2});
    field("goal_reached", &PlanSpec::goal_reached, Since{2});
    field("price", &PlanSpec::price, Since{2}, at_least(0));
    field("cost", &PlanSpec::cost, UnlessDefault{}, Since{2}, CostParts{});
}

class Cluster;

/// Checks that everything a plan names exists in `cluster`: tasks, nodes (vacated, opened and served ones
/// too), GPUs of destinations; and that moves come in ascending waves below `waves`.
/// @throws InvalidInput with every problem
void validate(const Plan& plan, const Cluster& cluster);

/// The plan with the names of the snapshot it was made for.
/// @param stats numbers about it by name, such as those of `consolidation::to_stats`
[[nodiscard]] PlanSpec to_spec(const Plan& plan, const Cluster& cluster,
                               std::map<std::string, double> stats = {});

/// The plan with the ids of `cluster`: moves sorted by wave (order within a wave kept), vacated and opened nodes ascending,
/// `stats` left out.
///
/// Only what an id can express is checked here; whether the plan is right is for `verify::plan` to say.
/// @throws InvalidInput with every unknown name, every GPU that its node lacks or that is named twice, and every
///     wave that is no number from 0 to 2^32 - 1
[[nodiscard]] Plan resolve(const PlanSpec& plan, const Cluster& cluster);

/// The snapshot after the plan: evictions first, then wave by wave, then placements.
///
/// Follows the plan as an executor would: every step must be possible when its turn comes, and all moves of a wave
/// take their destinations while every source of that wave is still held, but for those of tasks that restart. What a plan must observe beyond that
/// (empty nodes, disruption limits, budgets, the list of vacated nodes) is for `verify::plan` to judge, which also reports
/// all violations instead of the first.
///
/// @param plan with ids of `cluster`; moves in ascending order of waves
/// @return a copy of `cluster` with the new placements and no history
/// @throws InvalidInput for what `validate(plan, cluster)` refuses; else with the first step that is not possible: a task that is not where the plan has it, that may
///     not be moved or evicted, or that does not fit; `cluster` is never changed
///
/// O(size of the cluster + steps). Deterministic.
[[nodiscard]] Cluster apply(const Cluster& cluster, const Plan& plan);

}  // namespace gpusched
