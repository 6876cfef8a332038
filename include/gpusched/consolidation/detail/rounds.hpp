// Rounds: partition, solve the groups, join, repeat.
#pragma once

#include <gpusched/consolidation/bound.hpp>
#include <gpusched/consolidation/detail/chain_search.hpp>
#include <gpusched/consolidation/detail/exact_search.hpp>
#include <gpusched/consolidation/detail/joiner.hpp>
#include <gpusched/consolidation/detail/threads.hpp>
#include <gpusched/consolidation/policies.hpp>
#include <gpusched/core/lp.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace GPUSCHED_NAMESPACE::consolidation {
namespace detail {

/// Workspaces for as many groups as run at once, kept in step with what earlier rounds have moved.
class WorkspacePool {
  public:
    WorkspacePool(const Cluster& snapshot, const Scope& scope) : snapshot_(snapshot), scope_(scope) {}

    [[nodiscard]] std::unique_ptr<Workspace> acquire(std::span<const Step> applied) {
        std::unique_ptr<Workspace> work;
        {
            const std::lock_guard lock(mutex_);
            if (!idle_.empty()) {
                work = std::move(idle_.back());
                idle_.pop_back();
            }
        }
        if (!work) work = std::make_unique<Workspace>(snapshot_, scope_);
        for (; work->applied < applied.size(); ++work->applied) {
            const auto& step = applied[work->applied];
            work->cluster.assign(step.task, step.to, step.gpus);
        }
        work->cluster.commit();
        return work;
    }
    void release(std::unique_ptr<Workspace> work) {
        work->cluster.rollback(0);
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(work));
    }

  private:
    const Cluster& snapshot_;
    const Scope& scope_;
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
        weights.push_back(static_cast<std::int64_t>(policies.weight(cluster, node)));
    std::int64_t known = 0;
    for (const auto& vacated : found) known += vacated.chains.gain;
    auto better = exact_search(cluster, scope, group, weights, known, options, budget);
    if (!better.empty() && policies.acceptance(better.front().chains)) found = std::move(better);
}

/// The policies of one round: those of all rounds, unless the node order makes itself ready for each.
/// @param cluster as all groups of the round find it
template <class... Kinds>
[[nodiscard]] decltype(auto) for_round(const Policies<Kinds...>& policies, const Cluster& cluster) {
    if constexpr (PreparesRounds<decltype(policies.node_order)>)
        return with_node_order(policies, policies.node_order.for_round(cluster));
    else
        return (policies);
}

/// All rounds of one search.
/// @param noise in the order of the nodes, from this seed; absent = the order as it is
template <class Policies>
Result search(const Cluster& cluster, const Policies& policies, const Options& options, ExecutorRef executor,
              Budget& budget, std::optional<std::uint64_t> noise = {}) {
    budget.release_reserve();
    Joiner joined(cluster, options);
    WorkspacePool workspaces(cluster, joined.scope());
    const Rng rng(options.seed);
    const int full_depth = std::min(options.depth, policies.switches.deepest);
    const int rounds = std::min(options.rounds, policies.switches.most_rounds);
    const bool shallow_first = policies.switches.shallow_round_first && rounds > 1;
    int depth = shallow_first ? std::min(full_depth, 2) : full_depth;
    Partition partition;
    std::vector<std::uint8_t> gained;
    auto watch = [&] { (void)budget.exhausted(); };
    for (int round = 0; round < rounds && !budget.exhausted(); ++round) {
        auto round_rng = rng.split(static_cast<std::uint64_t>(round));
        auto groups = policies.partitioner(cluster, options.partition_size, round_rng);
        // A group that is the same as in the last round, and gained nothing then, has nothing to gain now.
        if (groups != partition) gained.assign(groups.size(), 1);
        partition = std::move(groups);
        std::vector<std::vector<Vacated>> found(partition.size());
        std::vector<Statistics> counters(partition.size());
        budget.report("round", round, rounds);
        const auto& now = for_round(policies, joined.cluster());
        auto solve = [&](std::size_t g) {
            if (!gained[g] || budget.exhausted()) return;
            auto work = workspaces.acquire(joined.steps());
            ChainSearch search(*work, now, depth, budget, counters[g], noise);
            found[g] = search.run(partition[g], joined.vacated(), joined.spent());
            workspaces.release(std::move(work));
            if (policies.switches.exact_when_tiny && round == 0 && full_depth >= 3)
                improve_exactly(cluster, joined.scope(), partition[g], policies, options, budget, found[g]);
        };
        executor.run(partition.size(), IndexTask(solve), WaitTask(watch));
        for (std::size_t g = 0; g < partition.size(); ++g) gained[g] = !found[g].empty();
        const bool more = joined.join(found, counters);
        if (depth < full_depth) {
            depth = full_depth;
            gained.assign(partition.size(), 1);
        } else if (!more) {
            break;
        }
    }
    return joined.finish(budget);
}

/// The one place where options meet policies: the limits of the options become those of the acceptance.
template <class... Kinds>
[[nodiscard]] auto with_limits(const Policies<Kinds...>& policies, const Options& options) {
    if constexpr (TakesLimits<decltype(policies.acceptance)>)
        return with_acceptance(policies, policies.acceptance.with_limits(options));
    else
        return policies;
}

/// With options that were validated.
template <class... Kinds>
Result consolidate(const Cluster& cluster, const Policies<Kinds...>& without_limits, const Options& options,
                   const Context& context) {
    require_lp(options.bound_method, context);
    auto policies = with_limits(without_limits, options);
    if (options.clear) policies.switches.fill_gaps = false;  // no node that was asked for gains by it
    Budget budget(context, options.time_limit);
    const Threads threads(options, context);
    const auto executor = threads.executor();

    auto best = search(cluster, policies, options, executor, budget);
    if (options.polish_time) {
        const auto worth = [&](const Result& result) {
            std::int64_t sum = 0;
            for (const auto node : result.plan.vacated_nodes)
                sum += static_cast<std::int64_t>(policies.weight(cluster, node));
            return std::pair(sum, -result.stats.moves);
        };
        const auto first_reason = best.stop_reason;
        // A search asks one budget only: that of polishing ends no later than all the time there is.
        auto time_s = *options.polish_time;
        if (options.time_limit) time_s = std::clamp(*options.time_limit - budget.elapsed_s(), 0.0, time_s);
        Budget polish(context, time_s);
        for (std::uint64_t seed = options.seed + 1; !polish.exhausted() && !budget.exhausted(); ++seed) {
            auto again = options;
            again.seed = seed;
            auto other = search(cluster, policies, again, executor, polish, seed);
            if (worth(other) > worth(best)) best = std::move(other);
        }
        if (polish.reason() == StopReason::cancelled)
            best.stop_reason = StopReason::cancelled;
        else
            best.stop_reason = budget.exhausted() ? budget.reason() : first_reason;
    }
    best.plan.bound = detail::bound(cluster, make_scope(cluster, options), options.bound_method, context.lp,
                                    budget, executor);
    if (best.stop_reason == StopReason::completed) best.stop_reason = budget.reason();  // in the bound
    return best;
}

}  // namespace detail

template <class... Kinds>
Result consolidate(const Cluster& cluster, const Policies<Kinds...>& policies, const Options& options,
                   const Context& context) {
    validate(options, cluster, policies);
    return detail::consolidate(cluster, policies, options, context);
}

}  // namespace GPUSCHED_NAMESPACE::consolidation
