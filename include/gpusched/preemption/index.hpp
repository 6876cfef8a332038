// SPDX-License-Identifier: Apache-2.0
// PreemptionIndex: preemption decisions from caches that follow the events of a cluster.
#pragma once

#include <gpusched/preemption/preempt.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace gpusched::preemption {

/// Answers `preempt` for policies `imp` and `exhaustive`, again and again, while nodes and tasks come, change and go.
///
/// Per shape of preemptor (everything about a task that its answer depends on) it keeps the best candidate of every node in a
/// tournament. It follows the events of the cluster (follower.hpp): a change marks one node; the next decision asks the marked
/// nodes again and reads the winner. Nothing needs to be told, and a question about another cluster starts afresh. The answer is
/// the one that `preempt` gives on a snapshot of the same state, ties included. Preemptors with group constraints are asked
/// everywhere each time, since their answers depend on other nodes; so are all where the cluster keeps no events
/// (`Cluster::keep_events`).
///
/// A change of a gang marks the nodes of all its running members; a change of a disruption budget marks all nodes.
///
/// Not thread-safe; no part of it allocates once every shape has been seen and every list has had its length, but for
/// preemptors with group constraints, nodes with more than 64 potential victims, victims that gangs or disruption budgets bind, and
/// `replace_victims`.
class PreemptionIndex {
  public:
    /// @param options policy `imp` or `exhaustive`; `engine`, `now`, `cost` and the rest as for `preempt`. `cost` must
    ///     depend on the task and the time alone. No `time_limit` and no `filter`, since answers are kept; `search_limit` bounds them. Without
    ///     `now` time is that of the cluster; when it goes on, costs are asked again everywhere.
    /// @param most_shapes how many shapes are kept, >= 1; beyond them the one not asked for longest makes room
    /// @throws InvalidInput for options out of range and other policies
    explicit PreemptionIndex(Options options = {}, std::size_t most_shapes = 64);
    PreemptionIndex(PreemptionIndex&&) noexcept;
    PreemptionIndex& operator=(PreemptionIndex&&) noexcept;
    ~PreemptionIndex();

    /// What `preempt` would decide on the cluster as it is. O(marked nodes x (search + log nodes)).
    /// @return nothing when no eviction helps; else a decision that is good until the next call
    /// @throws InvalidInput and InternalError as `preempt`
    [[nodiscard]] const Decision* decide(const Cluster& cluster, TaskId preemptor);
    /// Takes in the events of the cluster now, as every question does; whoever asks next need not.
    void catch_up(const Cluster& cluster);
    /// All answers so far are exact, as Result::proven.
    [[nodiscard]] bool proven() const noexcept;
    /// Shapes that are kept now.
    [[nodiscard]] std::size_t shapes() const noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Owns a copy of a cluster, takes the events that a scheduler reports, and answers with a `PreemptionIndex` that follows them.
/// For callers that keep no `Cluster` of their own; the others use `PreemptionIndex` beside it.
///
/// A node that has failed stays in the cluster, without tasks and cordoned, until it is reported as repaired. While a decision is
/// being made, the cost function may read, but not report events: that is an error.
///
/// Not thread-safe.
class OnlinePreemption {
  public:
    /// @param options as for `PreemptionIndex`; `now` sets the time of the copy
    /// @throws InvalidInput as `PreemptionIndex`
    explicit OnlinePreemption(const Cluster& snapshot, Options options = {}, std::size_t most_shapes = 64);

    /// The cluster as reported so far.
    [[nodiscard]] const Cluster& cluster() const noexcept { return cluster_; }
    [[nodiscard]] const PreemptionIndex& index() const noexcept { return index_; }
    /// Whether the node has vanished, as `fail_node` said.
    [[nodiscard]] bool has_failed(NodeId node) const { return failed_.contains(node); }

    /// A task started on a node, or moved there.
    /// @throws InvalidInput for GPUs or devices that the task does not ask for, and for a node that has failed
    void place(TaskId task, NodeId node, GpuMask gpus);
    /// A task ended or was evicted; nothing happens if it does not run.
    void remove(TaskId task);
    /// A GPU failed, or was repaired, also one that had failed in the snapshot. Tasks on it stay.
    /// @throws InvalidInput for a GPU that the node does not have
    void fail_gpu(NodeId node, int gpu, bool failed = true);
    /// A node vanished, or came back empty. Its tasks become pending.
    void fail_node(NodeId node, bool failed = true);
    /// Time goes on. Costs are asked again everywhere: O(nodes) at each shape's next decision.
    void set_now(std::int64_t now);
    /// Carries out a decision: victims leave, the preemptor starts, and so do victims that are placed again.
    /// @throws InvalidInput as `place`; nothing is changed then
    void apply(const Decision& decision, TaskId preemptor);

    /// As `PreemptionIndex::decide`.
    [[nodiscard]] const Decision* decide(TaskId preemptor);

  private:
    struct Receiving {  // whom a node took in before it failed
        bool schedulable = true;
        std::vector<Taint> taints{};
    };
    void require_idle() const;
    void require_fit(TaskId task, NodeId node, GpuMask gpus) const;

    Cluster cluster_;
    PreemptionIndex index_;
    std::map<NodeId, Receiving> failed_{};
    bool deciding_ = false;
};

}  // namespace gpusched::preemption
