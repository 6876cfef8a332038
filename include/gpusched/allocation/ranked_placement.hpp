// SPDX-License-Identifier: Apache-2.0
// RankedPlacement: places one task after another on the node of the greatest score, with scores kept between
// tasks.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/detail/policy_checks.hpp>
#include <gpusched/allocation/detail/prepared_nodes.hpp>
#include <gpusched/allocation/detail/score_index.hpp>
#include <gpusched/allocation/filters.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/model/follower.hpp>

#include <optional>
#include <utility>

namespace gpusched::allocation {

/// A placement policy made of a ranker (NodeRanker), a GPU picker (GpuPicker) and a filter (NodeFilter). It
/// returns the same as `place`, much faster for many tasks in a row.
///
/// Scores of node-local rankers (see NodeRanker) are kept per kind of task and node. They are renewed only on
/// nodes that changed since the last task of that kind. Other rankers, and rankers with a filter that is not
/// node-local, are called for every node every time; so is every ranker if the cluster keeps no events
/// (`Cluster::keep_events`). Scores follow the events of the cluster (follower.hpp), so callers need not
/// report changes. A call with another cluster starts over. The chosen node is checked again before it is
/// returned.
///
/// Complexity with node-local policies: one score per node that changed since the last task of that kind,
/// plus O(nodes / 32), plus the changes that can still be undone in the cluster. Memory: 16 bytes per kind of
/// task and eligible node, at most about 256 MiB; beyond that the least recently used kinds are dropped.
template <class R, class P, class F = AnyNode>
class RankedPlacement {
    static_assert(detail::check_ranker<R>());
    static_assert(detail::check_gpu_picker<P>());
    static_assert(detail::check_filter<F>());

  public:
    explicit RankedPlacement(R ranker = {}, P picker = {}, F filter = {})
        : ranker_(std::move(ranker)), picker_(std::move(picker)), filter_(std::move(filter)) {}

    std::optional<Destination> operator()(const Cluster& cluster, TaskId task, Rng& rng) {
        if constexpr (may_keep_scores) {
            if (keeps_scores() && cluster.events() != nullptr) {
                const auto node = best_kept(kept_.of(cluster), cluster, task, rng);
                if (node == none<NodeId>) return std::nullopt;
                return Destination{node, pick_gpus(picker_, cluster, task, node, rng)};
            }
        }
        return place(cluster, task, ranker_, picker_, rng, filter_);
    }

    /// Processes the events of the cluster now, as every call does, so that the next call need not.
    void catch_up(const Cluster& cluster) {
        if constexpr (may_keep_scores)
            if (keeps_scores() && cluster.events() != nullptr) (void)kept_.of(cluster);
    }

    /// True if ranker and filter are node-local.
    [[nodiscard]] bool keeps_scores() const {
        return may_keep_scores && detail::node_local(ranker_) && detail::node_local(filter_);
    }

  private:
    /// Data derived from the cluster.
    struct Kept {
        detail::ScoreIndex<Score<R>> index;
        detail::PreparedNodes<R> prepared;
        void rebuild(const Cluster& cluster) {
            index.rebuild(cluster);
            prepared.rebuild(cluster);
        }
        void usage_changed(const Cluster& cluster, NodeId node) {
            index.usage_changed(cluster, node);
            prepared.usage_changed(cluster, node);
        }
        void node_changed(const Cluster& cluster, NodeId node) {
            index.node_changed(cluster, node);
            prepared.usage_changed(cluster, node);
        }
    };

    NodeId best_kept(Kept& kept, const Cluster& cluster, TaskId task, Rng& rng) {
        return kept.index.best(cluster, task, [&](NodeId node) -> std::optional<Score<R>> {
            if (!filter_(cluster, task, node)) return std::nullopt;
            if constexpr (detail::PreparingRanker<R>)
                return ranker_(cluster, task, node, kept.prepared.of(cluster, node, ranker_));
            else
                return detail::ask(ranker_, cluster, task, node, rng);
        });
    }

    static constexpr bool may_keep_scores = detail::may_be_node_local<R> && detail::may_be_node_local<F>;
    R ranker_;
    P picker_;
    F filter_;
    Followed<Kept> kept_;
};

}  // namespace gpusched::allocation
