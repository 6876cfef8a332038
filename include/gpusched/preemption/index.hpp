// SPDX-License-Identifier: Apache-2.0
// PreemptionIndex: preemption decisions from caches that follow the events of a cluster.
#pragma once

#include <gpusched/preemption/preempt.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

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

}  // namespace gpusched::preemption
