// SPDX-License-Identifier: Apache-2.0
// PreemptionIndex and OnlinePreemption: repeated decisions from caches that follow a cluster's events.
#pragma once

#include <gpusched/preemption/preempt.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace gpusched::preemption {

/// Answers `preempt` repeatedly for policies `imp` and `exhaustive`, while the cluster changes.
///
/// For each shape of preemptor (all properties of a task that affect the answer) it keeps the best candidate
/// of every node in a tournament tree. It follows the events of the cluster (follower.hpp): a change marks
/// one node, and the next decision evaluates the marked nodes again and reads the winner. The caller reports
/// nothing; a different cluster rebuilds the index. Answers are equal to those of `preempt` on the same
/// state, including ties. All nodes are evaluated each time for preemptors with group constraints, and if the
/// cluster keeps no events (`Cluster::keep_events`).
///
/// A change of a gang marks the nodes of all its running members; a change of a disruption budget marks all
/// nodes.
///
/// Not thread-safe. In the steady state it does not allocate, except for preemptors with group constraints,
/// nodes with more than 64 potential victims, victims in gangs or disruption budgets, and `replace_victims`.
class PreemptionIndex {
  public:
    /// @param options as for `preempt`, with policy `imp` or `exhaustive` and without `time_limit` and
    ///     `filter`. `cost` must depend on the task and the time only. Without `now`, the time is that of the
    ///     cluster; its changes mark all nodes.
    /// @param most_shapes number of shapes that are kept, >= 1; beyond it the least recently used shape is
    ///     dropped
    /// @throws InvalidInput for options out of range and other policies
    explicit PreemptionIndex(Options options = {}, std::size_t most_shapes = 64);
    PreemptionIndex(PreemptionIndex&&) noexcept;
    PreemptionIndex& operator=(PreemptionIndex&&) noexcept;
    ~PreemptionIndex();

    /// Returns the decision of `preempt` on the current state. O(marked nodes x (search + log nodes)).
    /// @return nullptr if no eviction helps; else a decision that is valid until the next call
    /// @throws InvalidInput and InternalError as `preempt`
    [[nodiscard]] const Decision* decide(const Cluster& cluster, TaskId preemptor);
    /// Processes the pending events of the cluster, as `decide` does first, to shorten the next decision.
    void catch_up(const Cluster& cluster);
    /// All decisions so far are exact, as Result::proven.
    [[nodiscard]] bool proven() const noexcept;
    /// The number of shapes in the index.
    [[nodiscard]] std::size_t shapes() const noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// A copy of a cluster that takes the events which a scheduler reports, and a `PreemptionIndex` on it. For
/// callers that keep no `Cluster`; others use `PreemptionIndex`.
///
/// A failed node stays in the cluster, cordoned and without tasks, until it is reported as repaired. While a
/// decision is being made, the cost function may read the state but not report events.
///
/// Not thread-safe.
class OnlinePreemption {
  public:
    /// @param options as for `PreemptionIndex`; `now` sets the time of the copy
    /// @throws InvalidInput as `PreemptionIndex`
    explicit OnlinePreemption(const Cluster& snapshot, Options options = {}, std::size_t most_shapes = 64);

    /// The cluster after all reported events.
    [[nodiscard]] const Cluster& cluster() const noexcept { return cluster_; }
    [[nodiscard]] const PreemptionIndex& index() const noexcept { return index_; }
    /// Returns whether the node is reported as failed.
    [[nodiscard]] bool has_failed(NodeId node) const { return failed_.contains(node); }

    /// Reports that a task started on a node, or moved to it.
    /// @throws InvalidInput for GPUs or devices that the task does not request, and for a failed node
    void place(TaskId task, NodeId node, GpuMask gpus);
    /// Reports that a task ended or was evicted; ignored if it does not run.
    void remove(TaskId task);
    /// Reports that a GPU failed or was repaired. Its tasks stay.
    /// @throws InvalidInput for a GPU that the node does not have
    void fail_gpu(NodeId node, int gpu, bool failed = true);
    /// Reports that a node failed, or is back without tasks. Its tasks become pending.
    void fail_node(NodeId node, bool failed = true);
    /// Sets the time, in seconds. All costs change: the next decision of each shape is O(nodes).
    void set_now(std::int64_t now);
    /// Applies a decision: removes the victims, places the preemptor, and places `replaced` victims again.
    /// @throws InvalidInput as `place`, without any change
    void apply(const Decision& decision, TaskId preemptor);

    /// As `PreemptionIndex::decide`.
    [[nodiscard]] const Decision* decide(TaskId preemptor);

  private:
    struct Receiving {  // schedulability and taints of a node before it failed
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
