// Joiner: collects what the groups found, within the migration budget, and makes the plan of it.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/wave_order.hpp>
#include <gpusched/core/budget.hpp>

#include <span>
#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation::detail {

/// All steps that vacate one node.
struct Vacated {
    ChainSet chains;
    std::vector<Step> steps;
};

/// Joins the groups' results round by round, in a fixed order.
class Joiner {
  public:
    Joiner(const Cluster& cluster, const Options& options);

    [[nodiscard]] const Scope& scope() const noexcept { return scope_; }
    /// Everything joined so far, in an order in which each step is possible.
    [[nodiscard]] std::span<const Step> steps() const noexcept { return steps_; }
    /// The snapshot with these steps made.
    [[nodiscard]] const Cluster& cluster() const noexcept { return cluster_; }
    [[nodiscard]] std::span<const std::uint8_t> vacated() const noexcept { return vacated_; }
    /// On what was vacated so far, tidying not counted.
    [[nodiscard]] const Spent& spent() const noexcept { return spent_; }

    /// Takes one round's results. Chains of a group build on each other, so a group contributes a prefix of its
    /// chains: as far as the migration budget goes, the best gain per move first over all groups.
    /// @return whether anything was gained and there is budget for more
    bool join(std::vector<std::vector<Vacated>>& found, std::span<const Statistics> counters);

    /// Orders the moves and fills in plan and statistics.
    [[nodiscard]] Result finish(const Budget& budget);

  private:
    bool try_take(const Vacated& vacated);

    const Cluster& snapshot_;
    const Options& options_;
    Scope scope_;
    Cluster cluster_;  // after all joined steps
    std::vector<Step> steps_;
    std::vector<std::uint8_t> vacated_;
    Spent spent_;
    std::vector<NodeId> served_;  // by chain: the node that it is to vacate
    std::int64_t moves_ = 0, cost_ = 0;
    bool out_of_budget_ = false;
    Statistics stats_;
};

}  // namespace GPUSCHED_NAMESPACE::consolidation::detail

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/consolidation/impl/joiner.ipp>
#endif
