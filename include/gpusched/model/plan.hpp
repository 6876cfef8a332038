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

/// The resources that a task of one shape needs on a node. At least one amount is above 0.
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

/// The goal of a plan: a number of empty nodes, or a number of free slots. Nodes and slots that exist already
/// count.
///
/// A node counts if it is not cordoned and could hold the task `usable_by`. Without `usable_by`, a node
/// counts if a task may run there that tolerates only the taints (NoSchedule, NoExecute) common to all nodes
/// of the GPU model that are not cordoned. An empty node counts only if it has a healthy GPU, unless the
/// cluster has no GPUs.
struct Goal {
    /// Number of nodes without tasks other than daemons, >= 1.
    std::optional<std::int64_t> empty_nodes{};
    /// Shape of the slots, which use idle resources of single nodes.
    std::optional<SlotShape> slots{};
    /// Number of slots, >= 1; absent = 1. Only with `slots`.
    std::optional<std::int64_t> count{};
    /// Only nodes of this GPU model count; empty = any model.
    std::string gpu_model{};
    /// Only nodes count that could hold this task if all tasks left that may move: by its GPU models, node
    /// selector, node affinity and tolerations, and by its requests for GPUs and all other resources.
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

/// How a move is executed.
enum class MoveMode : std::uint8_t {
    copy,     ///< make before break: the task holds both places until its wave ends
    restart,  ///< break before make: the task frees its old place when its wave starts and is down during it
};

/// The mode of a task with this mobility, which is not Mobility::none.
[[nodiscard]] constexpr MoveMode move_mode(Mobility how) noexcept {
    return how == Mobility::copy ? MoveMode::copy : MoveMode::restart;
}

/// One migration. All moves of a wave take their destinations while all sources of the wave are still held,
/// except the sources of tasks that restart.
struct Move {
    TaskId task = none<TaskId>;
    NodeId from = none<NodeId>;
    NodeId to = none<NodeId>;
    GpuMask gpus = 0;  ///< GPUs on `to`
    std::uint32_t wave = 0;
    MoveMode how = MoveMode::copy;
    std::uint32_t chain = no_chain;  ///< the ejection chain: its moves are useful only together
    NodeId serves = none<NodeId>;    ///< the node that this move helps to vacate; none = unknown
    static constexpr std::uint32_t no_chain = 0xFFFFFFFFu;  ///< unknown chain
    bool operator==(const Move&) const = default;
};

/// A pending task that starts after the last wave.
struct Placement {
    TaskId task = none<TaskId>;
    NodeId node = none<NodeId>;
    GpuMask gpus = 0;
    bool operator==(const Placement&) const = default;
};

/// Proven limits of every final placement that satisfies the constraints. Vacated nodes count without the
/// empty nodes that the placement opens.
struct Bound {
    std::int64_t occupied_nodes_at_least = 0;
    std::int64_t vacated_nodes_at_most = 0;
    std::int64_t vacated_gpus_at_most = 0;
    std::string method{};  ///< "counting" or "lp"; empty = no bound was computed
    /// If moves have a price: the largest possible value of a plan, in thousandths, like `value_milli` of the
    /// statistics.
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

/// The parts of the cost of a plan, in the order of documents: those of `admission::Cost`.
inline constexpr std::array<std::string_view, 7> cost_part_names{"moves", "lost_work", "restarts", "losses",
                                                                 "tasks", "recalls",   "budgets"};
/// The mark of a field with such parts by name, each at least 0.
struct CostParts {};

/// The changes to a snapshot. Evictions come first, then waves 0 to waves - 1, then placements. The first
/// possible placement is made, repeatedly.
///
/// A task stands for a logical replica: its replacement after a restart or an eviction is the same task, even
/// under another name. So an evicted task may also have a placement, and then runs again there.
struct Plan {
    std::uint32_t waves = 0;
    std::vector<Move> moves{};            ///< by ascending wave
    std::vector<NodeId> vacated_nodes{};  ///< nodes with a non-daemon task before and none after, ascending
    std::vector<TaskId> evictions{};
    std::vector<Placement> placements{};
    Bound bound{};
    std::vector<NodeId> opened_nodes{};  ///< destinations of moves that held only daemons before, ascending
    std::optional<Goal> goal{};          ///< the goal of the plan
    std::optional<bool> goal_reached{};  ///< with a goal: true if the cluster meets it after the plan
    /// The price of a move for which the plan was made, in thousandths of a GPU; absent = moves were free.
    std::optional<std::int64_t> price{};
    bool operator==(const Plan&) const = default;
};

/// A plan with names, as in `gpusched.plan` files; the input of checkers.
struct PlanSpec {
    struct Move {
        std::string task{}, from{}, to{};
        std::vector<int> gpus{};
        std::int64_t wave = 0;
        MoveMode how = MoveMode::copy;
        std::optional<std::int64_t> chain{};
        std::string serves{};  ///< empty = unknown
        bool operator==(const Move&) const = default;
    };
    struct Placement {
        std::string task{}, node{};
        std::vector<int> gpus{};
        bool operator==(const Placement&) const = default;
    };
    /// A fact of the snapshot, for texts and tables.
    struct Task {
        std::string name{};
        std::string job{};                        ///< empty = none
        std::optional<std::string> owner_kind{};  ///< as in `TaskSpec`
        std::int64_t gpu_milli = 0;               ///< thousandths of GPUs that it holds or requests
        bool operator==(const Task&) const = default;
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
    /// The cost of the plan by parts, in GPU-seconds; empty = unknown.
    std::map<std::string, double> cost{};
    /// The tasks that the plan names, by ascending name; empty = unknown. Documents do not contain them, and
    /// comparisons ignore them. See `describe_tasks`.
    std::vector<Task> tasks{};
    bool operator==(const PlanSpec& other) const;
    /// The facts about a task; null = unknown.
    [[nodiscard]] const Task* find_task(std::string_view name) const noexcept;
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

/// Checks that all tasks, nodes and GPUs of a plan exist in `cluster`, and that moves come in ascending waves
/// below `waves`.
/// @throws InvalidInput with every problem
void validate(const Plan& plan, const Cluster& cluster);

/// The plan with the names of its snapshot.
/// @param stats statistics by name, such as those of `consolidation::to_stats`
[[nodiscard]] PlanSpec to_spec(const Plan& plan, const Cluster& cluster,
                               std::map<std::string, double> stats = {});

/// The plan with the ids of `cluster`. Moves are sorted by wave and keep their order within a wave; vacated
/// and opened nodes are ascending; `stats` are dropped. Checks only names and numbers; `verify::plan` checks
/// the plan itself.
/// @throws InvalidInput with every unknown name, every GPU that does not exist or is named twice, and every
///     wave that is not from 0 to 2^32 - 1
[[nodiscard]] Plan resolve(const PlanSpec& plan, const Cluster& cluster);

/// Executes a plan: evictions first, then wave by wave, then placements. Every step must be possible at its
/// time. All moves of a wave take their destinations while all sources of the wave are still held, except
/// those of tasks that restart.
///
/// Does not check disruption limits, budgets, and the lists of vacated and opened nodes. `verify::plan` does,
/// and reports all violations instead of the first.
///
/// @param plan with ids of `cluster`; moves in ascending order of waves
/// @return a copy of `cluster` with the new placements and no history
/// @throws InvalidInput if `validate(plan, cluster)` fails; otherwise for the first step that is not
///     possible: a task that is not on the node of the plan, that cannot be moved or evicted, or that does
///     not fit
///
/// O(size of the cluster + steps). Deterministic.
[[nodiscard]] Cluster apply(const Cluster& cluster, const Plan& plan);

}  // namespace gpusched
