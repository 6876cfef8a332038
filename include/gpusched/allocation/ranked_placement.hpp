// RankedPlacement: one task after another to the node of the greatest score, with scores kept between tasks.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/detail/prepared_nodes.hpp>
#include <gpusched/allocation/detail/score_index.hpp>
#include <gpusched/allocation/place.hpp>

#include <optional>
#include <utility>

namespace gpusched::allocation {

/// A placement policy out of a ranker and a GPU picker: what `place` answers, much faster for many tasks in a row.
///
/// Scores of node-local rankers (see NodeRanker) are kept per kind of task and node, and renewed only where something
/// changed since that kind was last asked for; other rankers are asked about every node every time. One object serves
/// one cluster: tell it about every node that changes (`changed`), or start with a fresh copy.
///
/// Complexity with a node-local ranker: one score per node that changed since the last task of that kind, plus
/// O(nodes / 32). Memory: 16 bytes per kind of task and eligible node, at most about 256 MiB; beyond that the kinds not
/// asked for longest are forgotten.
template <NodeRanker R, GpuPicker P>
class RankedPlacement {
  public:
    explicit RankedPlacement(R ranker = {}, P picker = {})
        : ranker_(std::move(ranker)), picker_(std::move(picker)) {}

    std::optional<Destination> operator()(const Cluster& cluster, TaskId task, Rng& rng) {
        if constexpr (!is_node_local<R>) {
            return place(cluster, task, ranker_, picker_, rng);
        } else {
            const auto score = [&](NodeId node) {
                if constexpr (detail::PreparingRanker<R>)
                    return ranker_(cluster, task, node, prepared_.of(cluster, node, ranker_));
                else
                    return detail::ask(ranker_, cluster, task, node, rng);
            };
            const auto node = index_.best(cluster, task, score);
            if (node == none<NodeId>) return std::nullopt;
            if (cluster.inventory().tasks.gpu_count[index(task)] == 0) return Destination{node, 0};
            return Destination{node, detail::ask(picker_, cluster, task, node, rng)};
        }
    }

    void changed(NodeId node) {
        if constexpr (is_node_local<R>) index_.changed(node);
        prepared_.changed(node);
    }

  private:
    R ranker_;
    P picker_;
    detail::ScoreIndex<Score<R>> index_;
    detail::PreparedNodes<R> prepared_;
};

}  // namespace gpusched::allocation
