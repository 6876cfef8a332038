// Placing one task where it fits, without moving or evicting anybody.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/filters.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/fragmentation/workload.hpp>
#include <gpusched/model/feasibility.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::allocation {

/// The feasible node of the greatest score, and the GPUs that the picker takes there.
///
/// Filter, rank, pick: how schedulers place one task without evicting anybody. ASI's non-preemptive scheduling is
/// `Lexicographic(Packing{}, Homogeneous{}, EvictionHistory{})`. A task that is placed already is judged as if it
/// moved. The cluster is not changed: see `Cluster::assign`.
///
/// @param task any task of the cluster (its index is not checked here)
/// @param rng used only by policies that take it
/// @return nothing when no node is feasible and passes the filter. Ties go to the first node of the cluster.
///
/// Complexity: O(nodes) calls of the ranker. To place many tasks in a row, see RankedPlacement.
template <NodeRanker R, GpuPicker P, NodeFilter F = AnyNode>
[[nodiscard]] std::optional<Destination> place(const Cluster& cluster, TaskId task, const R& ranker,
                                               const P& picker, Rng& rng, const F& filter = {}) {
    const auto& asked = detail::for_task(ranker, cluster, task);
    std::optional<Score<R>> best_score;
    NodeId best = none<NodeId>;
    for (const auto node : cluster.nodes()) {
        if (find_obstacle(cluster, task, node) != Obstacle::none || !filter(cluster, task, node)) continue;
        auto score = detail::ask(asked, cluster, task, node, rng);
        if (best_score && !(*best_score < score)) continue;
        best_score = std::move(score);
        best = node;
    }
    if (best == none<NodeId>) return std::nullopt;
    if (cluster.inventory().tasks.gpu_count[index(task)] == 0) return Destination{best, 0};
    return Destination{best, detail::ask(picker, cluster, task, best, rng)};
}

/// The nodes where the task would fit now, in the cluster's order: those that `place` ranks.
///
/// For policies that choose among nodes themselves. A task that is placed already is judged as if it moved.
/// @throws InvalidInput for a task that the cluster does not have
/// Complexity: O(nodes).
[[nodiscard]] std::vector<NodeId> feasible_nodes(const Cluster& cluster, TaskId task);

/// How to place one task, by name.
struct PlaceOptions {
    /// One after the other: each breaks the ties that those before it leave; at least one. Names: see
    /// `ranker_names`. The default is ASI's non-preemptive scheduling.
    std::vector<std::string> rankers{"packing", "homogeneous", "eviction_history"};
    /// The node must pass all of them. Names: see `filter_names`.
    std::vector<std::string> filters{};
    /// Which GPUs of the node. Names: see `gpu_picker_names`.
    std::string gpu_picker = "by_wish";
    std::uint64_t seed = 0;  ///< for "random"
    /// What "fgd" and "expected_fill" expect to come; absent = tasks like the cluster's own, which costs O(tasks) each
    /// time. Not looked at by the others.
    std::optional<fragmentation::Workload> workload{};
};
template <class F>
constexpr void visit_fields(std::type_identity<PlaceOptions>, F&& field) {
    field("rankers", &PlaceOptions::rankers);
    field("filters", &PlaceOptions::filters);
    field("gpu_picker", &PlaceOptions::gpu_picker);
    field("seed", &PlaceOptions::seed);
}

/// The same with policies chosen by name.
/// @throws InvalidInput for a task that the cluster does not have or that runs already, an unknown name, an empty list of rankers; with
///     "fgd" or "expected_fill", for a workload that is empty or out of range
[[nodiscard]] std::optional<Destination> place(const Cluster& cluster, TaskId task,
                                               const PlaceOptions& options = {});

}  // namespace gpusched::allocation

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/allocation/impl/place.ipp>
#endif
