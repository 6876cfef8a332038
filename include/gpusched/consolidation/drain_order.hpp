// SPDX-License-Identifier: Apache-2.0
// drain_order(): batches of nodes for a rolling upgrade, each with a plan that empties it.
#pragma once

#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::consolidation {

/// Options of `drain_order`.
struct DrainOptions {
    /// Maximum number of nodes in a batch, >= 1.
    std::int64_t batch = 1;
    /// The nodes to drain. Absent = all.
    std::optional<std::vector<NodeId>> nodes{};
    /// Drain only nodes of this GPU model, also by a short name such as "h100"; empty = of all models.
    std::string gpu_model{};
    /// Nothing leaves these nodes and nothing moves onto them. None of them may be in `nodes`.
    std::vector<NodeId> exempt{};
    /// Only members beyond a job's `min_members` may move.
    bool protect_core_members = false;
    /// Number of orders to try, >= 1. The search ends earlier if the order is proven to be the best.
    std::int64_t tries = 4;
    /// Set of policies that empty a batch: `fast`, `best` (ours) or `ipc` (the paper's).
    Preset preset = Preset::best;
    /// Seed of random choices.
    std::uint64_t seed = 0;
    /// Number of threads; 0 = one per hardware thread. The result does not depend on it.
    std::size_t threads = 0;
    /// Seconds, >= 0. When they have passed, the batches found so far are returned.
    std::optional<double> time_limit{};

    WaveLimits limits{};  ///< limits of every wave
};
template <class F>
constexpr void visit_fields(std::type_identity<DrainOptions>, F&& field) {
    field("batch", &DrainOptions::batch, at_least(1));
    field("nodes", &DrainOptions::nodes);
    field("gpu_model", &DrainOptions::gpu_model);
    field("exempt", &DrainOptions::exempt);
    field("protect_core_members", &DrainOptions::protect_core_members);
    field("tries", &DrainOptions::tries, at_least(1));
    field("preset", &DrainOptions::preset);
    field("seed", &DrainOptions::seed);
    field("threads", &DrainOptions::threads);
    field("time_limit", &DrainOptions::time_limit, at_least(0));
    field("limits", &DrainOptions::limits, Inlined{});
}

/// Nodes that are down together.
struct DrainBatch {
    std::vector<NodeId> nodes;  ///< the nodes, ascending
    /// Empties the nodes, in the cluster as the batches before leave it.
    Plan plan;
    std::vector<JobId> restarted_again;  ///< jobs that it restarts after an earlier batch did, ascending
};

/// Batches in order, and the nodes that cannot be drained.
struct DrainOrder {
    std::vector<DrainBatch> batches;  ///< the batches, in order
    /// The nodes that cannot be drained, ascending, each with the tasks that keep it occupied. A task that
    /// may move is judged in the cluster as the last batch leaves it. A node that was not tried before the
    /// search was stopped is `not_worthwhile`, without tasks.
    std::vector<Explanation> left;
    /// Lower bound by counting on the number of batches of every order that drains the same nodes.
    std::int64_t batches_at_least = 0;
    std::int64_t moves = 0;                 ///< moves of all batches, including intermediate moves
    std::int64_t moved_tasks = 0;           ///< tasks that move
    std::int64_t moved_twice = 0;           ///< tasks that move in more than one batch
    std::int64_t jobs_restarted_twice = 0;  ///< jobs with tasks that restart in more than one batch
    std::int64_t move_cost = 0;             ///< sum of `move_cost` over the tasks that each batch moves
    StopReason stop_reason = StopReason::completed;  ///< why the search ended
};

/// Plans the order in which nodes are drained for an upgrade, in batches.
///
/// Each batch is emptied onto the rest of the cluster by a plan as `consolidate` makes it. Then its nodes are
/// down; nothing moves onto them. Before the next batch they return, empty, and receive tasks. A cordoned node
/// does not receive.
///
/// The order with the fewest nodes that cannot be drained is the best; then that with the fewest batches, the
/// lowest cost of moves, and the fewest tasks that move in more than one batch. The search is a heuristic.
///
/// @return batches whose plans are valid one after another; a node without tasks is drained without moves
/// @throws InvalidInput for options out of range, unknown nodes, and nodes in both `nodes` and `exempt`
/// @note same input gives the same result for any number of threads, unless a time limit or a cancellation
///     ends the search
/// Complexity: O(tries x (batches + nodes that cannot be drained)) calls of `consolidate`.
[[nodiscard]] DrainOrder drain_order(const Cluster& cluster, const DrainOptions& options = {},
                                     const Context& context = {});

/// Returns a lower bound on the number of batches of at most `batch` nodes in which `nodes` can be drained.
///
/// While a batch is down, the other nodes hold all tasks. So the capacity of a batch is at most the idle
/// capacity of the nodes that receive, in GPUs of each model and in GPUs, cores and memory of the cluster.
/// O(nodes + tasks)
[[nodiscard]] std::int64_t drain_batches_at_least(const Cluster& cluster, std::vector<NodeId> nodes,
                                                  std::int64_t batch);

}  // namespace gpusched::consolidation
