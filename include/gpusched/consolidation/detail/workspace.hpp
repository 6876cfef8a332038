// Workspace: a group's private copy of the cluster, and moves on it that can be taken back.
#pragma once

#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/detail/failed_requests.hpp>
#include <gpusched/consolidation/detail/joiner.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/wave_order.hpp>
#include <gpusched/model/feasibility.hpp>

#include <span>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation::detail {

/// What a search works on: its own copy of the snapshot and the indices over it.
struct Workspace {
    Workspace(const Cluster& before, const Scope& s)
        : snapshot(before), cluster(before), scope(s), index(cluster), on_stack(cluster.node_slots()) {}
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

/// The moves made since the account was opened, each possible when its turn comes, and what they come to.
template <class Policies>
class OpenMoves {
  public:
    OpenMoves(Workspace& work, const Policies& policies) : work_(work), policies_(policies) {}

    /// What comes next is to vacate `node`, which holds `tasks`.
    void open(NodeId node, std::span<const TaskId> tasks, const Spent& before) {
        const auto& inv = work_.cluster.inventory();
        chains_ = {.node = node,
                   .gain = static_cast<std::int64_t>(policies_.weight(work_.cluster, node)),
                   .before = before};
        for (const auto task : tasks)
            if (work_.snapshot.node_of(task) == node) {
                ++chains_.tasks;
                chains_.cost += inv.tasks.move_cost[index(task)];
            }
        chains_.moves = chains_.tasks;
    }
    /// Moves a task if nothing stands in the way.
    bool place(TaskId task, NodeId node) {
        auto& cluster = work_.cluster;
        if (work_.on_stack[index(node)] || find_obstacle(cluster, task, node) != Obstacle::none) return false;
        const bool needs_gpus = cluster.inventory().tasks.gpu_count[index(task)] > 0;
        const auto whole =
            needs_gpus ? static_cast<GpuMask>(policies_.picker(cluster, task, node)) : GpuMask{0};
        const auto gpus = whole | free_devices_for(cluster, task, node);
        const auto from = cluster.node_of(task);
        cluster.assign(task, node, gpus);
        work_.index.usage_changed(cluster, from);
        work_.index.usage_changed(cluster, node);
        steps_.push_back({task, from, node, gpus, 0});
        count(steps_.back(), 1);
        return true;
    }
    [[nodiscard]] std::size_t mark() const noexcept { return steps_.size(); }
    void undo_to(std::size_t mark) {
        while (steps_.size() > mark) {
            const auto step = steps_.back();
            steps_.pop_back();
            count(step, -1);
            work_.cluster.undo();
            work_.index.usage_changed(work_.cluster, step.to);
            work_.index.usage_changed(work_.cluster, step.from);
        }
    }
    /// What it takes so far; the tasks of the node count before they move.
    [[nodiscard]] const ChainSet& chains() const noexcept { return chains_; }
    /// Closes the account: the moves are made.
    [[nodiscard]] Vacated close() { return {std::exchange(chains_, {}), std::exchange(steps_, {})}; }
    /// Closes the account: nothing has happened.
    void drop() {
        undo_to(0);
        chains_ = {};
    }

  private:
    void count(const Step& step, int sign) {
        // The node's own tasks are counted already, and tasks that have left their home move in any case.
        if (step.from == chains_.node || work_.snapshot.node_of(step.task) != step.from) return;
        chains_.moves += sign;
        chains_.cost += sign * work_.cluster.inventory().tasks.move_cost[index(step.task)];
    }

    Workspace& work_;
    const Policies& policies_;
    ChainSet chains_;
    std::vector<Step> steps_;
};

}  // namespace GPUSCHED_NAMESPACE::consolidation::detail
