// SPDX-License-Identifier: Apache-2.0
// SearchState: where a search stands, and how it goes back.
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

/// Who has left its node and by which means, who stands where, what has to be placed yet, and what all of it costs so far. The fields
/// are changed by the functions below, which `undo` takes back.
struct SearchState {
    /// What has become of a task.
    enum Fate : std::int64_t { untouched, lifted, evicted, moved, replaced, lost, placed };
    /// A task that has to be placed.
    struct Item {
        TaskId task = none<TaskId>;
        int depth = 0;  ///< 0 = a pod
    };
    /// How much had changed.
    struct Mark {
        std::size_t changes, journal, puts, todo, evictions;
    };

    /// @param copy of `snapshot`, without history
    SearchState(const Cluster& snapshot, Cluster copy, const Options& options, const Prices& prices,
                const preemption::detail::GangTable& gangs);

    [[nodiscard]] Mark mark() const noexcept;
    void undo(const Mark& to);
    /// One of the numbers below gets another value.
    void set(std::int64_t& value, std::int64_t to);
    /// A task goes to these GPUs of a node; to none: it leaves.
    void change(TaskId task, NodeId node, GpuMask gpus);
    /// A displaced task leaves its node for its least price, and has to be placed.
    void lift(TaskId task, int depth);
    /// Takes the victim into the books, and with it its gang where that, or a subgroup of it, falls below `min_members`.
    /// @param again it is placed again; else it is lost
    /// @param cut becomes true where the gang could have been split in other ways
    /// @return false where the limits, or the gang's members, do not allow it
    bool evict(TaskId task, bool again, bool& cut);
    /// Do the budgets of the task allow that it is down, too, while the evicted tasks are?
    [[nodiscard]] bool may_be_down(TaskId task) const;

    Cluster work;  // as it would be now
    consolidation::FreeIndex free;
    struct Changed {
        TaskId task;
        NodeId from, to;
        GpuMask gpus;
    };
    std::vector<Changed> changes{};  // as in the log of `work`
    std::vector<Placement> puts{};   // what was placed
    std::vector<Item> todo{};        // what has to be placed, the next one last
    std::vector<TaskId> evictions{};
    std::vector<std::int64_t> fate;    // by task
    std::vector<std::int64_t> broken;  // by job: 1 = leaves and is placed again, 2 = leaves
    std::int64_t cost = 0, moves = 0;
    std::int64_t lost_milli = 0;  // thousandths of a GPU
    std::int64_t pods_cost = 0;   // by the bounds of the nodes that they have taken
    std::int64_t pods_left = 0;

  private:
    bool evict_gang(JobId job, TaskId first, bool again, bool& cut);

    const Cluster& snapshot_;
    const Inventory& inv_;
    const Options& options_;
    const Prices& prices_;
    const preemption::detail::GangTable& gangs_;
    std::vector<std::pair<std::int64_t*, std::int64_t>> journal_{};
    std::vector<std::int64_t> gone_;     // by job: members evicted
    std::vector<std::int64_t> gone_in_;  // by subgroup: members evicted
    std::vector<std::int64_t> down_;     // by budget
};

}  // namespace gpusched::admission::detail
