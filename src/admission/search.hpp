// SPDX-License-Identifier: Apache-2.0
// Search: selects the tasks to displace for the pods, the means and their new places, at the lowest cost.
#pragma once

#include "admission/bounds.hpp"
#include "admission/covers.hpp"
#include "admission/prices.hpp"
#include "admission/search_state.hpp"
#include "preemption/gang_table.hpp"

#include <gpusched/admission/admit.hpp>
#include <gpusched/admission/options.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/waves.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/detail/small_vector.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace gpusched::admission::detail {

/// A complete solution: evictions, then moves in an order in which each is possible, then placements.
struct Solution {
    std::int64_t cost = never;
    std::vector<TaskId> evictions{};
    std::vector<consolidation::Step> moves{};
    std::vector<Placement> placements{};  ///< of pods and of victims that run again, in any order
};

/// Depth-first branch and bound over final placements. The tasks to place are on a stack: first the pods,
/// then the tasks displaced for them. A displaced task leaves its node at once and adds its least price; the
/// difference to the chosen means is added later. A complete placement is a solution if its moves can be made
/// in sequence.
class Search {
  public:
    /// @param copy a copy of `snapshot` without history
    Search(const Cluster& snapshot, Cluster copy, std::span<const TaskId> pods, const Options& options,
           const FilterAnswers& passes, const consolidation::Scope& scope, const PriceTable& prices,
           const preemption::detail::GangTable& gangs, NodeBounds& bounds, Budget& budget, Statistics& stats);

    /// Adds a known solution if it is the cheapest so far.
    void offer(Solution solution);
    enum class PassKind {
        usual,
        largest_first,  ///< without a solution: the largest of all pods and displaced tasks is placed first
        deferred,       ///< if tasks need others (near, spread): checks that last, displaces others for it
    };
    /// Searches for solutions with all pods on the nodes of `region` (ascending; empty = all nodes). Only the
    /// usual passes, which come first, change the lower bound.
    void run(std::span<const NodeId> region, PassKind kind);
    /// Searches for a solution with all pods on the nodes of `region` that costs no more than the best one.
    /// If there is one, returns true and appends it to `solutions`. Does not change the lower bound.
    bool match(std::span<const NodeId> region, std::int64_t most_steps);
    /// The solutions in the order of discovery. Each is cheaper than the previous one, except after `match`.
    [[nodiscard]] const std::vector<Solution>& solutions() const noexcept { return solutions_; }
    /// No solution in the searched regions costs less. `never` = there is none.
    [[nodiscard]] std::int64_t lower_bound() const noexcept { return lower_bound_; }
    /// The cost below which a solution is an improvement.
    [[nodiscard]] std::int64_t best() const noexcept { return best_; }

  private:
    using Item = SearchState::Item;
    using Items = boost::container::small_vector<Item, 8>;
    using enum SearchState::Fate;

    void descend();
    void place(const Item& item);
    void place_directly(const Item& item);
    void place_by_displacing(const Item& item);
    void displace_on(const Item& item, NodeId node, std::int64_t bound);
    void lose(const Item& item);
    void put(const Item& item, NodeId node);
    void finish();
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> size_of(TaskId task) const;
    void sort_todo();
    [[nodiscard]] Items find_helpers();
    [[nodiscard]] bool restarts_keep_budgets(const Solution& solution) const;
    bool order_moves(Solution& solution);
    bool try_orders(std::vector<consolidation::Step>& waiting, std::vector<consolidation::Step>& ordered,
                    int& tries);
    [[nodiscard]] bool fits(TaskId task, NodeId to, GpuMask& gpus, bool others) const;

    [[nodiscard]] bool has_other_gpus(TaskId task, NodeId node, GpuMask gpus) const;
    [[nodiscard]] bool displaces_at_home(const Item& item) const;
    [[nodiscard]] bool may_go(const Item& item, NodeId node) const;
    [[nodiscard]] bool helps_on(const Item& item, NodeId node) const;
    [[nodiscard]] std::int64_t bound() const;
    [[nodiscard]] bool must_stop();

    const Cluster& snapshot_;
    const Inventory& inv_;
    std::span<const TaskId> pods_;
    const Options& options_;
    const FilterAnswers& passes_;
    const consolidation::Scope& scope_;
    const PriceTable& prices_;
    NodeBounds& bounds_;
    Budget& budget_;
    Statistics& stats_;

    SearchState state_;
    CoverFinder covers_;
    std::int64_t must_lose_milli_;  // must be evicted for good, in thousandths of a GPU
    PodBounds pod_bounds_;

    std::vector<std::uint8_t> exempt_;              // by node; empty = none
    std::vector<std::uint8_t> in_region_, banned_;  // by node; empty = all nodes, none
    bool by_region_ = false;
    std::int64_t best_ = never, lower_bound_ = never;
    std::int64_t limit_ = 0, stop_at_ = 0, share_ = 0;
    bool lends_ = false;                       // some task is on Standby
    bool local_ = false;                       // some pod requires GPUs of one NUMA node or socket
    int depth_ = 0;                            // limit of the current pass
    bool loses_needed_early_ = false;          // first evict displaced tasks for good while some must be
    bool largest_first_ = false;               // displaced tasks can be placed before the task they leave for
    std::int64_t left_for_largest_first_ = 0;  // steps left for passes with largest_first_
    std::int64_t left_for_others_ = 0;         // steps left for passes with defers_
    bool needs_others_ = false;                // a task was placed whose constraints can need other tasks
    bool defers_ = false;                      // checks near and spread last, and displaces members for them
    bool incomplete_ = false;                  // a part was omitted that may hold a cheaper solution
    bool hit_step_limit_ = false;              // because of a limit on steps
    std::vector<Solution> solutions_;
    std::size_t makeshift_ = 0;  // solutions of passes with largest_first_: too poor to shorten others
};

}  // namespace gpusched::admission::detail
