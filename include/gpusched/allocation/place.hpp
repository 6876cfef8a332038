// SPDX-License-Identifier: Apache-2.0
// Places one task on a node that fits it, without moves or evictions.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/detail/policy_checks.hpp>
#include <gpusched/allocation/filters.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/core/enum_names.hpp>
#include <gpusched/model/feasibility.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace gpusched::allocation {

/// Returns the feasible node of the greatest score, and the GPUs that the picker takes there.
///
/// Filter, rank, pick: schedulers place one task this way without evictions. ASI's non-preemptive scheduling
/// is `Lexicographic(Packing{}, Homogeneous{}, EvictionHistory{})`. A task that is placed already is judged
/// as if it moved. The cluster is not changed: see `Cluster::assign`.
///
/// @param ranker a NodeRanker, @param picker a GpuPicker, @param filter a NodeFilter (concepts.hpp)
/// @param task any task of the cluster (its index is not checked here)
/// @param rng used only by policies that take it
/// @return nothing if no node is feasible and passes the filter. Ties go to the first node of the cluster.
///
/// Complexity: O(nodes) calls of the ranker. To place many tasks in a row, see RankedPlacement; with policies
/// by name, see named.hpp.
template <class R, class P, class F = AnyNode>
[[nodiscard]] std::optional<Destination> place(const Cluster& cluster, TaskId task, const R& ranker,
                                               const P& picker, Rng& rng, const F& filter = {}) {
    static_assert(detail::check_ranker<R>());
    static_assert(detail::check_gpu_picker<P>());
    static_assert(detail::check_filter<F>());
    // An error above is reported once, without the errors that would follow from it.
    if constexpr (NodeRanker<R> && GpuPicker<P> && NodeFilter<F>) {
        const auto& asked = detail::for_task(ranker, cluster, task);
        std::optional<Score<R>> best_score;
        NodeId best = none<NodeId>;
        for (const auto node : cluster.nodes()) {
            if (find_obstacle(cluster, task, node) != Obstacle::none || !filter(cluster, task, node))
                continue;
            auto score = detail::ask(asked, cluster, task, node, rng);
            if (best_score && !(*best_score < score)) continue;
            best_score = std::move(score);
            best = node;
        }
        if (best != none<NodeId>) return Destination{best, pick_gpus(picker, cluster, task, best, rng)};
    }
    return std::nullopt;
}

/// Returns the nodes on which the task would fit now, in the cluster's order: the nodes that `place` ranks.
///
/// For policies that choose among nodes themselves. A task that is placed already is judged as if it moved.
/// @throws InvalidInput for a task that the cluster does not have
/// Complexity: O(nodes).
[[nodiscard]] std::vector<NodeId> feasible_nodes(const Cluster& cluster, TaskId task);

/// The old copy of a placed task during a move.
enum class OldCopy : std::uint8_t {
    stays,   ///< keeps its resources until the new copy runs (make before break)
    leaves,  ///< frees its resources first (break before make, or an eviction)
};

/// Returns the task's obstacle on each node, in the cluster's order of nodes; `Obstacle::none` if it would
/// fit now.
///
/// For questions about possible placements, such as a comparison with another scheduler. Distinguishes the
/// four reasons that `find_obstacle` reports as `not_eligible`.
/// @param old_copy of a task that is placed already
/// @throws InvalidInput for a task that the cluster does not have
/// Complexity: O(nodes); with `OldCopy::leaves` also a copy of the cluster.
[[nodiscard]] std::vector<Obstacle> find_obstacles(const Cluster& cluster, TaskId task,
                                                   OldCopy old_copy = OldCopy::stays);

namespace detail {
/// @throws InvalidInput for a task that the cluster does not have
void require_task(const Cluster& cluster, TaskId task);
}  // namespace detail

}  // namespace gpusched::allocation
