// SPDX-License-Identifier: Apache-2.0
// Rounds: partitions the cluster, solves the groups in parallel, joins their moves, and repeats; then
// exchanges.
#pragma once

#include <gpusched/consolidation/chain_search.hpp>
#include <gpusched/consolidation/exchange_search.hpp>
#include <gpusched/consolidation/opening_search.hpp>
#include <gpusched/consolidation/policies.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/threads.hpp>
#include <gpusched/consolidation/waves.hpp>
#include <gpusched/consolidation/workspace.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/executor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace gpusched::consolidation::detail {

/// Joins the results of the groups round by round, in a fixed order and within the migration budget, and
/// makes the plan.
class Joiner {
  public:
    /// @param options must outlive the joiner, as `scope`, which is made from them
    Joiner(const Cluster& cluster, const Options& options, const Scope& scope);

    /// All joined steps, in an order in which each step is possible.
    [[nodiscard]] std::span<const Step> steps() const noexcept { return steps_; }
    /// The snapshot after these steps.
    [[nodiscard]] const Cluster& cluster() const noexcept { return cluster_; }
    /// By NodeId: vacated by these steps.
    [[nodiscard]] std::span<const std::uint8_t> vacated() const noexcept { return vacated_; }
    /// Number of joined chains.
    [[nodiscard]] std::size_t chains() const noexcept { return chains_.size(); }
    /// The sums over the first `chains` chains.
    [[nodiscard]] ChainSet sums(std::size_t chains) const {
        return chains == 0 ? ChainSet{} : chains_[chains - 1].sums;
    }

    /// Why the search ended: the budget's reason, or `move_budget` if the migration budget excluded chains.
    [[nodiscard]] StopReason stop_reason(const Budget& budget) const {
        const auto reason = budget.reason();
        return reason == StopReason::completed && out_of_budget_ ? StopReason::move_budget : reason;
    }

    /// Joins the results of one round. Chains of a group build on each other, so a group contributes a prefix
    /// of its chains. With a migration budget, the best gain per move over all groups comes first.
    /// @return whether anything was gained and the budget is not used up
    bool join(const std::vector<std::vector<Vacated>>& found, std::span<const Statistics> counters);

    /// Orders the moves of the first `chains` chains and fills in plan and statistics.
    [[nodiscard]] Result plan(const Budget& budget, std::size_t chains) const;
    /// The same for all chains, without a copy of the cluster. Nothing can be joined afterwards.
    [[nodiscard]] Result finish(const Budget& budget);

  private:
    struct Chain {
        NodeId node;                   // that it vacates
        std::vector<NodeId> reopened;  // that it gives up
        std::size_t steps;             // number, with those of all chains before
        ChainSet sums;                 // with all chains before
    };
    bool try_join(const Vacated& vacated);
    Result plan_on(Cluster cluster, const Budget& budget, std::size_t chains) const;

    const Cluster& snapshot_;
    const Options& options_;
    const Scope& scope_;
    Cluster cluster_;        // after all joined steps
    AnyPlacementRule rule_;  // likewise
    std::vector<Step> steps_;
    std::vector<std::uint8_t> vacated_;
    std::vector<Chain> chains_;
    bool out_of_budget_ = false;
    Statistics stats_;
};

/// Looks for the plan of the highest value, then of the lowest cost, in a group of at most 12 nodes that may
/// be vacated and 20 movable tasks. Nodes that may be opened count as destinations, at their cost.
///
/// Sets of nodes are tried by descending value, as far as they can be better than the known plan. For each,
/// the tasks on it and up to three others are removed, and placed again in all ways that fit. The first way
/// that can be ordered into waves without dropping a chain is taken. Gives up and returns the best plan so
/// far for larger groups, for snapshots of more than 1,000 nodes, or after 300,000 trials.
///
/// @param cluster the snapshot
/// @param known_gain, known_cost of the plan to improve
/// @param weights by position in `group`: weight of vacating that node
/// @return chains whose steps are possible in their order; empty if nothing better was found
[[nodiscard]] std::vector<Vacated> exact_search(const Cluster& cluster, const Scope& scope,
                                                std::span<const NodeId> group,
                                                std::span<const std::int64_t> weights,
                                                std::int64_t known_gain, std::int64_t known_cost,
                                                const Options& options, Budget& budget);

/// Workspaces for the groups that run at once, updated with the steps of earlier rounds.
class WorkspacePool {
  public:
    WorkspacePool(const Cluster& snapshot, const Scope& scope, const AnyPlacementRule& rule)
        : snapshot_(snapshot), scope_(scope), rule_(rule) {}

    /// @param applied the steps of earlier rounds
    [[nodiscard]] std::unique_ptr<Workspace> acquire(std::span<const Step> applied);
    void release(std::unique_ptr<Workspace> work);

  private:
    const Cluster& snapshot_;
    const Scope& scope_;
    const AnyPlacementRule& rule_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Workspace>> idle_;
};

/// Replaces the result of a tiny group by a better one from the exact search, if there is any.
template <class Policies>
void improve_exactly(const Cluster& cluster, const Scope& scope, std::span<const NodeId> group,
                     const Policies& policies, const Options& options, Budget& budget,
                     std::vector<Vacated>& found) {
    if (group.size() > 64 || options.max_moves || options.max_move_cost) return;
    std::vector<std::int64_t> weights;
    for (const auto node : group)
        weights.push_back(static_cast<std::int64_t>(policies.node_weight(cluster, node)));
    const auto total = [](const std::vector<Vacated>& chains) {
        ChainSet sum;
        for (const auto& vacated : chains) sum += vacated.chains;
        return sum;
    };
    const auto known = total(found);
    auto better = exact_search(cluster, scope, group, weights, known.gain, known.cost, options, budget);
    if (!better.empty() && policies.acceptance(total(better))) found = std::move(better);
}

/// Returns the policies of one round: the same, unless the node order prepares for each round.
/// @param cluster as all groups of the round find it
template <class Policies>
[[nodiscard]] decltype(auto) for_round(const Policies& policies, const Cluster& cluster) {
    if constexpr (PreparesRounds<decltype(policies.node_order)>)
        return with_node_order(policies, policies.node_order.for_round(cluster));
    else
        return (policies);
}

/// One search: rounds that build on each other, then exchanges.
class Rounds {
  public:
    /// @param noise a seed of noise in the order of the nodes; absent = none
    Rounds(const Cluster& cluster, const Scope& scope, const Options& options, ExecutorRef executor,
           Budget& budget, std::optional<std::uint64_t> noise = {})
        : cluster_(cluster), scope_(scope), options_(options), executor_(executor), budget_(budget),
          noise_(noise), joined_(cluster, options, scope), workspaces_(cluster, scope, options.rule) {
        budget.release_reserve();
    }

    /// Makes rounds until one gains nothing or the maximum is reached.
    /// @param by_price nodes whose moves cost the least for their weight come first, then the order of the
    ///     policy
    template <class Policies>
    void run(const Policies& policies, bool by_price = false) {
        const Rng rng(options_.seed);
        const int full_depth = std::min(options_.search.depth, policies.switches.deepest);
        const int rounds = std::min(options_.search.rounds, policies.switches.most_rounds);
        const bool shallow_first = policies.switches.shallow_round_first && rounds > 1;
        int depth = shallow_first ? std::min(full_depth, 2) : full_depth;
        std::vector<std::uint8_t> gained;
        partition_.clear();
        for (int round = 0; round < rounds && !budget_.exhausted(); ++round) {
            auto round_rng = rng.split(static_cast<std::uint64_t>(round));
            auto groups = policies.partitioner(cluster_, options_.search.partition_size, round_rng);
            // A group that gained nothing in the last round has nothing to gain if it is the same.
            if (groups != partition_) gained.assign(groups.size(), 1);
            partition_ = std::move(groups);
            budget_.report("round", round, rounds);
            const auto& now = for_round(policies, joined_.cluster());
            const bool exactly =
                policies.switches.exact_when_tiny && joined_.chains() == 0 && full_depth >= 3;
            const auto found = solve(
                [&](std::size_t g, Workspace& work, Statistics& counters) {
                    auto vacated = ChainSearch(work, now, depth, budget_, counters, noise_, by_price)
                                       .run(partition_[g], joined_.vacated());
                    if (exactly)
                        improve_exactly(cluster_, scope_, partition_[g], policies, options_, budget_,
                                        vacated);
                    return vacated;
                },
                gained);
            for (std::size_t g = 0; g < partition_.size(); ++g) gained[g] = !found[g].empty();
            const bool more = join(found);
            if (depth < full_depth) {
                depth = full_depth;
                gained.assign(partition_.size(), 1);
            } else if (!more) {
                break;
            }
        }
        if (options_.open_price && !budget_.exhausted()) open(policies, full_depth);
    }

    /// Joins the chains that `solve(workspace, counters)` returns.
    template <class Solve>
    void add(Solve&& solve) {
        counters_.assign(1, {});
        auto work = workspaces_.acquire(joined_.steps());
        const auto found = solve(*work, counters_[0]);
        workspaces_.release(std::move(work));
        (void)join(found);
    }

    /// Exchanges vacated nodes for others, in the groups of the policies.
    /// @param number distinguishes the random choices of several calls
    template <class Policies>
    void exchange(const Policies& policies, std::uint64_t number = 0) {
        const auto steps = policies.switches.exchange_steps;
        if (steps == 0 || options_.max_moves || options_.max_move_cost) return;
        const auto rng = Rng(options_.seed).split(~number);
        auto groups_rng = rng;
        partition_ = policies.partitioner(cluster_, options_.search.partition_size, groups_rng);
        // Few nodes are one group, so that the exchange judges the waves of all their moves.
        if (cluster_.node_count() <= exchanged_together) {
            for (std::size_t g = 1; g < partition_.size(); ++g)
                partition_[0].insert(partition_[0].end(), partition_[g].begin(), partition_[g].end());
            partition_.resize(std::min<std::size_t>(partition_.size(), 1));
        }
        budget_.report("exchange", 0, 1);
        const int depth = std::min(options_.search.depth, policies.switches.deepest);
        (void)join(solve([&](std::size_t g, Workspace& work, Statistics& counters) {
            return ExchangeSearch(work, policies, options_, depth, joined_.steps(), budget_, counters)
                .run(partition_[g], joined_.vacated(), steps, rng.split(g));
        }));
    }

    [[nodiscard]] Joiner& joined() noexcept { return joined_; }

  private:
    /// Continues with nodes that were empty before the plan, in the groups of the last round.
    template <class Policies>
    void open(const Policies& policies, int depth) {
        const auto& now = for_round(policies, joined_.cluster());
        (void)join(solve([&](std::size_t g, Workspace& work, Statistics& counters) {
            return OpeningSearch(work, now, options_, depth, budget_, counters)
                .run(partition_[g], joined_.vacated());
        }));
    }
    /// Solves the groups in parallel.
    /// @param solve_group called with the number of the group, a workspace and its counters
    /// @param only by group: 0 = skip; empty = solve all groups
    template <class Solve>
    [[nodiscard]] std::vector<std::vector<Vacated>> solve(Solve&& solve_group,
                                                          std::span<const std::uint8_t> only = {}) {
        std::vector<std::vector<Vacated>> found(partition_.size());
        counters_.assign(partition_.size(), {});
        run_parts(executor_, budget_, partition_.size(), [&](std::size_t g) {
            if (budget_.exhausted() || (!only.empty() && !only[g])) return;
            auto work = workspaces_.acquire(joined_.steps());
            found[g] = solve_group(g, *work, counters_[g]);
            workspaces_.release(std::move(work));
        });
        return found;
    }
    bool join(const std::vector<std::vector<Vacated>>& found) { return joined_.join(found, counters_); }

    const Cluster& cluster_;
    const Scope& scope_;
    const Options& options_;
    ExecutorRef executor_;
    Budget& budget_;
    std::optional<std::uint64_t> noise_;
    Joiner joined_;
    WorkspacePool workspaces_;
    Partition partition_;
    std::vector<Statistics> counters_;
};

}  // namespace gpusched::consolidation::detail
