// Workspace: a group's private copy of the cluster, and moves on it that can be taken back.
#pragma once

#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/detail/failed_requests.hpp>
#include <gpusched/consolidation/detail/joiner.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/wave_order.hpp>
#include <gpusched/model/feasibility.hpp>

#include <utility>

namespace gpusched::consolidation::detail {

/// What a search works on: its own copy of the snapshot and the indices over it.
struct Workspace {
    Workspace(const Cluster& before, const Scope& s)
        : snapshot(before), cluster(before), scope(s), index(cluster), on_stack(cluster.node_count()) {}
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    const Cluster& snapshot;
    Cluster cluster;
    const Scope& scope;
    FreeIndex index;
    std::vector<std::uint8_t> on_stack;  // nodes that a chain under construction runs through
    FailedRequests failed;
    std::size_t applied = 0;  // how many of the joined steps the cluster has seen
};

/// The moves made since the last node was vacated. Each is possible when its turn comes.
template <class Policies>
class OpenMoves {
  public:
    OpenMoves(Workspace& work, const Policies& policies) : work_(work), policies_(policies) {}

    /// Moves a task if nothing stands in the way.
    bool place(TaskId task, NodeId node) {
        auto& cluster = work_.cluster;
        if (work_.on_stack[index(node)] || find_obstacle(cluster, task, node) != Obstacle::none) return false;
        const bool needs_gpus = cluster.inventory().tasks.gpu_count[index(task)] > 0;
        const auto gpus = needs_gpus ? policies_.picker(cluster, task, node) : GpuMask{0};
        const auto from = cluster.node_of(task);
        cluster.assign(task, node, gpus);
        work_.index.refresh(from);
        work_.index.refresh(node);
        steps_.push_back({task, from, node, gpus, 0});
        return true;
    }
    [[nodiscard]] std::size_t mark() const noexcept { return steps_.size(); }
    void undo_to(std::size_t mark) {
        while (steps_.size() > mark) {
            const auto step = steps_.back();
            steps_.pop_back();
            work_.cluster.undo();
            work_.index.refresh(step.to);
            work_.index.refresh(step.from);
        }
    }
    /// What vacating `node`, which held `tasks` tasks, takes so far.
    [[nodiscard]] ChainSet describe(NodeId node, std::size_t tasks) const {
        ChainSet set{.node = node, .tasks = static_cast<std::int64_t>(tasks)};
        if (node != none<NodeId>) set.gain = static_cast<std::int64_t>(policies_.weight(work_.cluster, node));
        for (const auto& step : steps_) {
            if (work_.snapshot.node_of(step.task) != step.from) continue;  // it moves in any case
            ++set.moves;
            set.cost += work_.cluster.inventory().tasks.move_cost[index(step.task)];
        }
        return set;
    }
    /// Closes the account: the moves are made.
    [[nodiscard]] Vacated take(NodeId node, std::size_t tasks) {
        return {describe(node, tasks), std::exchange(steps_, {})};
    }

  private:
    Workspace& work_;
    const Policies& policies_;
    std::vector<Step> steps_;
};

}  // namespace gpusched::consolidation::detail
