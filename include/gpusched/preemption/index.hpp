// PreemptionIndex: preemption decisions from caches that follow every event.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/preemption/preempt.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace GPUSCHED_NAMESPACE::preemption {

/// Answers `preempt` for policies `imp` and `exhaustive`, again and again, while tasks come and go and GPUs fail.
///
/// It keeps a copy of the cluster, and per shape of preemptor (everything about a task that its answer depends on) the
/// best candidate of every node in a tournament. An event marks one node; the next decision asks the marked nodes again
/// and reads the winner. The answer is the one that `preempt` gives on a snapshot of the same state, ties included.
/// Preemptors with group constraints are asked everywhere each time, since their answers depend on other nodes.
///
/// Nodes and tasks are those of the snapshot it was made from; who arrives later is pending there.
/// Events report what has happened and are believed: that a placement fits is not checked.
/// Not thread-safe; no part of it allocates once every shape has been seen and every list has had its length, but for
/// preemptors with group constraints and nodes with more than 64 potential victims.
class PreemptionIndex {
  public:
    /// @param options policy `imp` or `exhaustive`; `engine`, `now`, `cost` and the rest as for `preempt`. `cost` must
    ///     depend on the task and the time alone. No `time_limit`, since answers are kept; `search_limit` bounds them.
    /// @param most_shapes how many shapes are kept, >= 1; beyond them the one not asked for longest makes room
    /// @throws InvalidInput for options out of range and other policies
    explicit PreemptionIndex(Cluster cluster, Options options = {}, std::size_t most_shapes = 64);
    PreemptionIndex(PreemptionIndex&&) noexcept;
    PreemptionIndex& operator=(PreemptionIndex&&) noexcept;
    ~PreemptionIndex();

    // Events -----------------------------------------------------------------------------------------------
    /// A task started on a node (a pending one) or moved there.
    /// @throws InvalidInput for an unknown task, node or GPU, a wrong number of GPUs, or a node that has failed
    void place(TaskId task, NodeId node, GpuMask gpus);
    /// A task ended or was evicted; nothing happens if it does not run.
    void remove(TaskId task);
    /// A GPU failed, or was repaired, also one that had failed in the snapshot. Tasks on it stay. `cluster()` goes on
    /// saying what the snapshot said.
    void fail_gpu(NodeId node, int gpu, bool failed = true);
    /// A node vanished, or came back empty. Its tasks become pending.
    void fail_node(NodeId node, bool failed = true);
    /// Carries out a decision: victims leave, the preemptor starts.
    /// @throws InvalidInput as `place`, and for unknown victims; nobody has left then
    void apply(const Decision& decision, TaskId preemptor);
    /// Time goes on. Costs are asked again everywhere: O(nodes) at each shape's next decision.
    /// @throws InvalidInput beyond -10^12 .. 10^12 seconds
    void set_now(std::int64_t now);

    // Questions --------------------------------------------------------------------------------------------
    [[nodiscard]] const Cluster& cluster() const noexcept;
    /// GPUs that have failed: those of the snapshot, and what `fail_gpu` said since.
    [[nodiscard]] GpuMask failed_gpus(NodeId node) const;
    [[nodiscard]] bool has_failed(NodeId node) const;
    /// What `preempt` would decide. O(marked nodes x (search + log nodes)).
    /// @return nothing when no eviction helps; else a decision that is good until the next call
    /// @throws InvalidInput and InternalError as `preempt`
    [[nodiscard]] const Decision* decide(TaskId preemptor);
    /// All answers so far are exact, as Result::proven.
    [[nodiscard]] bool proven() const noexcept;
    /// Shapes that are kept now.
    [[nodiscard]] std::size_t shapes() const noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace GPUSCHED_NAMESPACE::preemption

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/preemption/impl/index.ipp>
#endif
