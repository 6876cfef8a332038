// SPDX-License-Identifier: Apache-2.0
// Joiner: collects what the groups found, within the migration budget, and makes the plan of it.
#pragma once

#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/wave_order.hpp>
#include <gpusched/core/budget.hpp>

#include <span>
#include <vector>

namespace gpusched::consolidation::detail {

/// All steps that vacate one node; or, where `chains` names none, steps that lead from one plan to another.
struct Vacated {
    ChainSet chains;
    std::vector<Step> steps;
    std::vector<NodeId> reopened{};  ///< nodes that were vacated before and are not any more
};

/// Joins the groups' results round by round, in a fixed order.
class Joiner {
  public:
    /// @param scope of these options; it and they must outlive the joiner
    Joiner(const Cluster& cluster, const Options& options, const Scope& scope);

    /// Everything joined so far, in an order in which each step is possible.
    [[nodiscard]] std::span<const Step> steps() const noexcept { return steps_; }
    /// The snapshot with these steps made.
    [[nodiscard]] const Cluster& cluster() const noexcept { return cluster_; }
    [[nodiscard]] std::span<const std::uint8_t> vacated() const noexcept { return vacated_; }
    /// How many chains were joined so far.
    [[nodiscard]] std::size_t chains() const noexcept { return chains_.size(); }
    /// Weight of the nodes that the first so many chains vacate, and what their moves cost.
    [[nodiscard]] std::int64_t weight(std::size_t chains) const {
        return chains == 0 ? 0 : chains_[chains - 1].weight;
    }
    [[nodiscard]] std::int64_t cost(std::size_t chains) const {
        return chains == 0 ? 0 : chains_[chains - 1].cost;
    }

    /// What it costs to open the nodes that these chains open, in thousandths of weight.
    [[nodiscard]] std::int64_t opening(std::size_t chains) const {
        return chains == 0 ? 0 : chains_[chains - 1].opening;
    }

    /// Why the search ended: the budget's reason, or that the migration budget kept something out.
    [[nodiscard]] StopReason stop_reason(const Budget& budget) const {
        const auto reason = budget.reason();
        return reason == StopReason::completed && out_of_budget_ ? StopReason::move_budget : reason;
    }

    /// Takes one round's results. Chains of a group build on each other, so a group contributes a prefix of its
    /// chains: as far as the migration budget goes, the best gain per move first over all groups.
    /// @return whether anything was gained and there is budget for more
    bool join(const std::vector<std::vector<Vacated>>& found, std::span<const Statistics> counters);

    /// Orders the moves of the first so many chains and fills in plan and statistics.
    [[nodiscard]] Result plan(const Budget& budget, std::size_t chains) const;
    /// The same for all chains. Nothing can be joined afterwards.
    [[nodiscard]] Result finish(const Budget& budget);

  private:
    struct Chain {
        NodeId node;                         // that it is to vacate
        std::vector<NodeId> reopened;        // that it gives up
        std::size_t steps;                   // of it and of all before
        std::int64_t weight, cost, opening;  // likewise
    };
    bool try_take(const Vacated& vacated);
    Result in_waves(Cluster cluster, const Budget& budget, std::size_t chains) const;

    const Cluster& snapshot_;
    const Options& options_;
    const Scope& scope_;
    Cluster cluster_;        // after all joined steps
    AnyPlacementRule rule_;  // likewise
    std::vector<Step> steps_;
    std::vector<std::uint8_t> vacated_;
    std::vector<Chain> chains_;
    std::int64_t moves_ = 0, cost_ = 0;
    bool out_of_budget_ = false;
    Statistics stats_;
};

}  // namespace gpusched::consolidation::detail
