// SPDX-License-Identifier: Apache-2.0
// OnlinePreemption: a cluster that changes event by event, and the preemption decisions on it.
#pragma once

#include <gpusched/preemption/index.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace gpusched::preemption {

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
