// SPDX-License-Identifier: Apache-2.0
// Rounds: partitions the cluster, solves the groups in parallel, and joins their moves.
#pragma once

#include <gpusched/consolidation/chain_search.hpp>
#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/detail/last_plan.hpp>
#include <gpusched/consolidation/exchange_search.hpp>
#include <gpusched/consolidation/opening_search.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/waves.hpp>
#include <gpusched/core/budget.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
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


/// Looks for the plan of the highest value, then of the lowest cost, in a group of at most 12 nodes that may be vacated and 20
/// movable tasks. Nodes that may be opened count as destinations, at what they cost.
///
/// Sets of nodes are tried by descending value, as far as they can be better than what is known. For each, the tasks on it and
/// up to three others are taken off, and put back in all ways that fit; the first way that can be ordered into waves
/// without dropping anything is taken. Gives up (and returns the best so far) for larger groups, for snapshots of more than 1,000 nodes, or after 300,000 trials. Not asked
/// where there is a migration budget or a group of more than 64 nodes.
///
/// @param cluster the snapshot
/// @param known_gain, known_cost of the plan that is to be beaten
/// @param weights by position in `group`: what vacating that node is worth
/// @return chains whose steps, one after the other, are possible; empty when nothing better was found
[[nodiscard]] std::vector<Vacated> exact_search(const Cluster& cluster, const Scope& scope,
                                                std::span<const NodeId> group,
                                                std::span<const std::int64_t> weights,
                                                std::int64_t known_gain, std::int64_t known_cost,
                                                const Options& options, Budget& budget);


/// Workspaces for as many groups as run at once, kept in step with what earlier rounds have moved.
class WorkspacePool {
  public:
    WorkspacePool(const Cluster& snapshot, const Scope& scope, const AnyPlacementRule& rule)
        : snapshot_(snapshot), scope_(scope), rule_(rule) {}

    [[nodiscard]] std::unique_ptr<Workspace> acquire(std::span<const Step> applied) {
        std::unique_ptr<Workspace> work;
        {
            const std::lock_guard lock(mutex_);
            if (!idle_.empty()) {
                work = std::move(idle_.back());
                idle_.pop_back();
            }
        }
        if (!work) work = std::make_unique<Workspace>(snapshot_, scope_, rule_);
        for (; work->applied < applied.size(); ++work->applied) {
            const auto& step = applied[work->applied];
            work->cluster.assign(step.task, step.to, step.gpus);
            work->rule.move(work->cluster, step.task, step.from, step.to);
        }
        work->cluster.commit();
        return work;
    }
    void release(std::unique_ptr<Workspace> work) {
        if (work->rule) return;  // it is not in the state of the cluster any more
        work->cluster.rollback(0);
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(work));
    }

  private:
    const Cluster& snapshot_;
    const Scope& scope_;
    const AnyPlacementRule& rule_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Workspace>> idle_;
};

/// Replaces what the search found by something better where the group is tiny and there is anything better.
template <class Policies>
void improve_exactly(const Cluster& cluster, const Scope& scope, std::span<const NodeId> group,
                     const Policies& policies, const Options& options, Budget& budget,
                     std::vector<Vacated>& found) {
    if (group.size() > 64 || options.max_moves || options.max_move_cost) return;
    std::vector<std::int64_t> weights;
    for (const auto node : group)
        weights.push_back(static_cast<std::int64_t>(policies.node_weight(cluster, node)));
    const auto in_all = [](const std::vector<Vacated>& chains) {
        ChainSet sum;
        for (const auto& vacated : chains) {
            sum.gain += vacated.chains.gain;
            sum.tasks += vacated.chains.tasks;
            sum.moves += vacated.chains.moves;
            sum.cost += vacated.chains.cost;
            sum.opening += vacated.chains.opening;
        }
        return sum;
    };
    const auto known = in_all(found);
    auto better = exact_search(cluster, scope, group, weights, known.gain, known.cost, options, budget);
    if (!better.empty() && policies.acceptance(in_all(better))) found = std::move(better);
}

/// The policies of one round: those of all rounds, unless the node order makes itself ready for each.
/// @param cluster as all groups of the round find it
template <class Policies>
[[nodiscard]] decltype(auto) for_round(const Policies& policies, const Cluster& cluster) {
    if constexpr (PreparesRounds<decltype(policies.node_order)>)
        return with_node_order(policies, policies.node_order.for_round(cluster));
    else
        return (policies);
}

/// One search: rounds, each of which builds on those before it, then exchanges.
class Rounds {
  public:
    /// @param noise in the order of the nodes, from this seed; absent = the order as it is
    Rounds(const Cluster& cluster, const Scope& scope, const Options& options, ExecutorRef executor,
           Budget& budget, std::optional<std::uint64_t> noise = {})
        : cluster_(cluster), scope_(scope), options_(options), executor_(executor), budget_(budget),
          noise_(noise), joined_(cluster, options, scope), workspaces_(cluster, scope, options.rule) {
        budget.release_reserve();
    }

    /// Makes rounds until one gains nothing, or there were enough.
    /// @param by_price nodes whose moves cost the least for what they are worth come first, then the order of the policy
    template <class Policies>
    void run(const Policies& policies, bool by_price = false) {
        const Rng rng(options_.seed);
        const int full_depth = std::min(options_.depth, policies.switches.deepest);
        const int rounds = std::min(options_.rounds, policies.switches.most_rounds);
        const bool shallow_first = policies.switches.shallow_round_first && rounds > 1;
        int depth = shallow_first ? std::min(full_depth, 2) : full_depth;
        std::vector<std::uint8_t> gained;
        partition_.clear();
        for (int round = 0; round < rounds && !budget_.exhausted(); ++round) {
            auto round_rng = rng.split(static_cast<std::uint64_t>(round));
            auto groups = policies.partitioner(cluster_, options_.partition_size, round_rng);
            // A group that is the same as in the last round, and gained nothing then, has nothing to gain now.
            if (groups != partition_) gained.assign(groups.size(), 1);
            partition_ = std::move(groups);
            budget_.report("round", round, rounds);
            const auto& now = for_round(policies, joined_.cluster());
            const bool exactly =
                policies.switches.exact_when_tiny && joined_.chains() == 0 && full_depth >= 3;
            const auto found = solve([&](std::size_t g, Statistics& counters) -> std::vector<Vacated> {
                if (!gained[g]) return {};
                auto work = workspaces_.acquire(joined_.steps());
                auto vacated = ChainSearch(*work, now, depth, budget_, counters, noise_, by_price)
                                   .run(partition_[g], joined_.vacated());
                workspaces_.release(std::move(work));
                if (exactly)
                    improve_exactly(cluster_, scope_, partition_[g], policies, options_, budget_, vacated);
                return vacated;
            });
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

    /// Begins with the moves of an earlier plan that are still possible, as far as they still vacate nodes.
    template <class Policies>
    void repeat(const Policies& policies, const LastPlan& last) {
        counters_.assign(1, {});
        auto work = workspaces_.acquire(joined_.steps());
        const std::vector<NodeId> nodes(cluster_.nodes().begin(), cluster_.nodes().end());
        const auto found = Repetition(*work, policies, counters_[0]).run(last, nodes);
        workspaces_.release(std::move(work));
        (void)join(found);
    }

    /// Exchanges vacated nodes for others, in the groups of the policies.
    /// @param number tells the random choices of several calls apart
    template <class Policies>
    void exchange(const Policies& policies, std::uint64_t number = 0) {
        const auto steps = policies.switches.exchange_steps;
        if (steps == 0 || options_.max_moves || options_.max_move_cost) return;
        const auto rng = Rng(options_.seed).split(~number);
        auto groups_rng = rng;
        partition_ = policies.partitioner(cluster_, options_.partition_size, groups_rng);
        // Few nodes are one group: what their moves come to in waves is judged as a whole.
        if (cluster_.node_count() <= exchanged_together) {
            for (std::size_t g = 1; g < partition_.size(); ++g)
                partition_[0].insert(partition_[0].end(), partition_[g].begin(), partition_[g].end());
            partition_.resize(std::min<std::size_t>(partition_.size(), 1));
        }
        budget_.report("exchange", 0, 1);
        const auto found = solve([&](std::size_t g, Statistics& counters) {
            auto work = workspaces_.acquire(joined_.steps());
            auto exchanged =
                ExchangeSearch(*work, policies, options_, std::min(options_.depth, policies.switches.deepest),
                               joined_.steps(), budget_, counters)
                    .run(partition_[g], joined_.vacated(), steps, rng.split(g));
            workspaces_.release(std::move(work));
            return exchanged;
        });
        (void)join(found);
    }

    [[nodiscard]] Joiner& joined() noexcept { return joined_; }

  private:
    /// Goes on by nodes that were empty before the plan, in the groups of the last round.
    template <class Policies>
    void open(const Policies& policies, int depth) {
        const auto& now = for_round(policies, joined_.cluster());
        const auto found = solve([&](std::size_t g, Statistics& counters) {
            auto work = workspaces_.acquire(joined_.steps());
            auto opened = OpeningSearch(*work, now, options_, depth, budget_, counters)
                              .run(partition_[g], joined_.vacated());
            workspaces_.release(std::move(work));
            return opened;
        });
        (void)join(found);
    }
    template <class Solve>
    [[nodiscard]] std::vector<std::vector<Vacated>> solve(Solve&& group) {
        std::vector<std::vector<Vacated>> found(partition_.size());
        counters_.assign(partition_.size(), {});
        auto one = [&](std::size_t g) {
            if (!budget_.exhausted()) found[g] = group(g, counters_[g]);
        };
        auto watch = [&] { (void)budget_.exhausted(); };
        executor_.run(partition_.size(), IndexTask(one), WaitTask(watch));
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
