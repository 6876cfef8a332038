// SPDX-License-Identifier: Apache-2.0
// SearchState: the partial plan of the search, with undo.
#pragma once

#include "admission/prices.hpp"
#include "preemption/gang_table.hpp"

#include <gpusched/admission/options.hpp>
#include <gpusched/consolidation/free_index.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace gpusched::admission::detail {

/// The displaced tasks and their means, the placements, the tasks that remain to be placed, and the cost so
/// far. Numbers change through `set` and the cluster through `change`, so that `undo` can revert them. Lists
/// grow at the end, and `undo` shortens them.
struct SearchState {
    /// The state of a task. `lifted`: off its node, without a decision yet. `evicted`: to be placed again
    /// with its gang.
    enum Fate : std::int64_t { untouched, lifted, evicted, moved, replaced, lost, placed };
    /// A task that remains to be placed.
    struct Item {
        TaskId task = none<TaskId>;
        int depth = 0;              ///< 0 = a pod
        bool leaving_helps = true;  ///< whether it is of use that it leaves, wherever it goes
        /// If the task is displaced because a domain of a set of kind near or spread has too few or too many
        /// members: the set and the domain. Otherwise none.
        std::uint32_t set = 0;
        DomainId domain = none<DomainId>;
        NodeId on = none<NodeId>;  ///< the node that other tasks have left for it; none = any
    };
    /// The lengths of all logs, for `undo`.
    struct Mark {
        std::size_t changes, journal, puts, todo, evictions;
    };

    /// @param copy of `snapshot`, without history
    SearchState(const Cluster& snapshot, Cluster copy, const Options& options, const PriceTable& prices,
                const preemption::detail::GangTable& gangs);

    [[nodiscard]] Mark mark() const noexcept;
    void undo(const Mark& to);
    /// Sets one of the numbers below.
    void set(std::int64_t& value, std::int64_t to);
    /// Moves a task to these GPUs of a node; removes it if `node` is none.
    void change(TaskId task, NodeId node, GpuMask gpus);
    /// Removes a displaced task from its node, adds its least price, and adds it to `todo`.
    void lift(const Item& item);
    /// Records the eviction of a task. Evicts the whole gang if the gang or a subgroup falls below
    /// `min_members`.
    /// @param again whether the task is placed again
    /// @param cut set to true if another split of the gang would be possible
    /// @return false if a limit or a member of the gang forbids it
    bool evict(TaskId task, bool again, bool& cut);
    /// Returns whether the disruption budgets allow that the task is down together with the evicted tasks.
    [[nodiscard]] bool may_be_down(TaskId task) const;

    Cluster work;  // the cluster after the changes so far
    consolidation::FreeIndex free;
    struct Changed {
        TaskId task;
        NodeId from, to;
        GpuMask gpus;
    };
    std::vector<Changed> changes{};  // parallel to the log of `work`
    std::vector<Placement> puts{};   // placements so far
    std::vector<Item> todo{};        // tasks that remain to be placed, the next one last
    std::vector<TaskId> evictions{};
    std::vector<std::int64_t> fate;    // by task
    std::vector<std::int64_t> broken;  // by job: 1 = evicted and placed again, 2 = evicted for good
    std::int64_t cost = 0, moves = 0;
    std::int64_t lost_milli = 0;  // evicted for good, in thousandths of a GPU
    std::int64_t pods_cost = 0;   // of placed pods, by the bounds of their nodes
    std::int64_t pods_left = 0;

  private:
    bool evict_gang(JobId job, TaskId first, bool again, bool& cut);

    const Cluster& snapshot_;
    const Inventory& inv_;
    const Options& options_;
    const PriceTable& prices_;
    const preemption::detail::GangTable& gangs_;
    std::vector<std::pair<std::int64_t*, std::int64_t>> journal_{};
    std::vector<std::int64_t> gone_;     // by job: members evicted
    std::vector<std::int64_t> gone_in_;  // by subgroup: members evicted
    std::vector<std::int64_t> down_;     // by budget
};

}  // namespace gpusched::admission::detail
