// SPDX-License-Identifier: Apache-2.0
// Search: which tasks leave for the pods, by which means, and where they go, at the least cost.
#pragma once

#include "admission/bounds.hpp"
#include "admission/covers.hpp"
#include "admission/prices.hpp"
#include "admission/search_state.hpp"
#include "preemption/gang_table.hpp"

#include <gpusched/admission/admit.hpp>
#include <gpusched/admission/options.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/wave_order.hpp>
#include <gpusched/core/budget.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace gpusched::admission::detail {

/// A way to let the pods in: evictions, then moves in an order in which each is possible, then placements.
struct Way {
    std::int64_t cost = never;
    std::vector<TaskId> evictions{};
    std::vector<consolidation::Step> moves{};
    std::vector<Placement> placements{};  ///< of the pods, in no order, and of victims that run again
};

/// Depth-first over final placements with bounds. What has to be placed yet is a stack: at first the pods; whoever is displaced
/// for one of its tasks comes on top. A displaced task is lifted off its node at once, and its cheapest price paid; what
/// its true means costs more is added when it is chosen. A complete placement counts if its moves can be made one after the other.
class Search {
  public:
    /// @param copy of `snapshot`, without history
    Search(const Cluster& snapshot, Cluster copy, std::span<const TaskId> pods, const Options& options,
           const FilterAnswers& passes, const consolidation::Scope& scope, const Prices& prices,
           const preemption::detail::GangTable& gangs, NodeBounds& bounds, Budget& budget, Statistics& stats);

    /// Takes in a way that is known.
    void offer(Way way);
    /// Looks for ways with all pods on the nodes of `region` (ascending; empty = everywhere).
    void run(std::span<const NodeId> region);
    /// Looks for a way with all pods on the nodes of `region` that costs no more than the best one; true where there is one, which then is
    /// the last of `ways`. The lower bound stays.
    bool match(std::span<const NodeId> region, std::int64_t most_steps);
    /// Ways that were found, each cheaper than the one before.
    [[nodiscard]] const std::vector<Way>& ways() const noexcept { return ways_; }
    /// No way in the regions that were searched costs less. `never` = there is none at all.
    [[nodiscard]] std::int64_t lower_bound() const noexcept { return lower_bound_; }
    /// What a way must cost less than to be of interest.
    [[nodiscard]] std::int64_t best() const noexcept { return best_; }

  private:
    using Item = SearchState::Item;
    using enum SearchState::Fate;

    void descend();
    void place(const Item& item);
    void place_directly(const Item& item);
    void place_by_displacing(const Item& item);
    void displace_on(const Item& item, NodeId node, std::int64_t bound);
    void lose(const Item& item);
    void put(const Item& item, NodeId node);
    void finish();
    [[nodiscard]] bool restarts_keep_budgets(const Way& way) const;
    bool make_possible(Way& way);

    [[nodiscard]] bool looks_beyond_its_node(TaskId task) const;
    [[nodiscard]] bool may_go(const Item& item, NodeId node) const;
    [[nodiscard]] std::int64_t bound() const;
    [[nodiscard]] bool out();

    const Cluster& snapshot_;
    const Inventory& inv_;
    std::span<const TaskId> pods_;
    const Options& options_;
    const FilterAnswers& passes_;
    const consolidation::Scope& scope_;
    const Prices& prices_;
    NodeBounds& bounds_;
    Budget& budget_;
    Statistics& stats_;

    SearchState state_;
    CoverFinder covers_;
    std::int64_t needed_milli_;  // what must be lost for good
    PodBounds pod_bounds_;

    std::vector<std::uint8_t> exempt_;              // by node; empty = none
    std::vector<std::uint8_t> in_region_, banned_;  // by node; empty = all, none
    bool by_region_ = false;
    std::int64_t best_ = never, lower_bound_ = never;
    std::int64_t limit_ = 0, stop_at_ = 0, share_ = 0;
    bool lends_ = false;                // Standby tasks do
    int depth_ = 0;                     // of the pass
    bool loses_early_ = false;          // displaced tasks are lost first as long as somebody must be
    bool loses_at_once_ = false;        // displaced tasks are lost before a place is looked for
    std::int64_t left_for_losses_ = 0;  // steps of such passes
    bool cut_ = false;                  // something was left out that may be a cheaper way
    bool stopped_ = false;              // and that because of a limit on steps
    std::vector<Way> ways_;
};

}  // namespace gpusched::admission::detail
