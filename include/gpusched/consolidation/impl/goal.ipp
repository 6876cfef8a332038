#pragma once

#include <gpusched/consolidation/bound.hpp>
#include <gpusched/consolidation/detail/price_ladder.hpp>
#include <gpusched/consolidation/goal.hpp>
#include <gpusched/consolidation/presets.hpp>
#include <gpusched/model/apply.hpp>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation {

namespace detail {

/// What is counted: empty nodes, or places for a shape.
class Wanted {
  public:
    Wanted(const Cluster& cluster, const GoalOptions& options) : options_(options) {
        if (!options.gpu_model.empty())
            model_ = make_id<GpuModelId>(cluster.inventory().gpu_models.find(options.gpu_model).value());
    }
    /// How many the node has.
    [[nodiscard]] std::int64_t on(const Cluster& cluster, NodeId node) const {
        if (!counts(cluster, node)) return 0;
        if (is_nodes()) return cluster.occupants(node) == 0 ? 1 : 0;
        return places(gpu_count(cluster.idle_gpus(node)), cluster.cpu_free_milli(node),
                      cluster.memory_free_mib(node));
    }
    /// How many it would have if it held daemons alone.
    [[nodiscard]] std::int64_t on_empty(const Cluster& cluster, NodeId node) const {
        if (!counts(cluster, node)) return 0;
        if (is_nodes()) return 1;
        const auto& t = cluster.inventory().tasks;
        auto taken = static_cast<GpuMask>(cluster.healthy_gpus(node));
        auto cpu = cluster.cpu_free_milli(node), memory = cluster.memory_free_mib(node);
        for (const auto task : cluster.tasks_on(node)) {
            if (t.daemon[index(task)]) {
                taken &= static_cast<GpuMask>(~cluster.gpus_of(task));
                continue;
            }
            cpu += t.cpu_milli[index(task)];
            memory += t.memory_mib[index(task)];
        }
        return places(gpu_count(taken), cpu, memory);
    }
    [[nodiscard]] std::int64_t in(const Cluster& cluster) const {
        std::int64_t sum = 0;
        for (const auto node : cluster.nodes()) sum += on(cluster, node);
        return sum;
    }

  private:
    [[nodiscard]] bool is_nodes() const {
        return options_.gpus == 0 && options_.cpu_milli == 0 && options_.memory_mib == 0;
    }
    [[nodiscard]] bool counts(const Cluster& cluster, NodeId node) const {
        const auto& nodes = cluster.inventory().nodes;
        return !nodes.is_cordoned(node) &&
               (options_.gpu_model.empty() || nodes.gpu_model[index(node)] == model_);
    }
    [[nodiscard]] std::int64_t places(std::int64_t gpus, std::int64_t cpu, std::int64_t memory) const {
        auto most = std::numeric_limits<std::int64_t>::max();
        const auto limit = [&](std::int64_t free, std::int64_t each) {
            if (each > 0) most = std::min(most, std::max<std::int64_t>(0, free) / each);
        };
        limit(gpus, options_.gpus);
        limit(cpu, options_.cpu_milli);
        limit(memory, options_.memory_mib);
        return most;
    }

    const GoalOptions& options_;
    GpuModelId model_ = none<GpuModelId>;
};

/// What each node would add, by NodeId.
struct AddedWeight {
    std::span<const std::int64_t> added;
    std::int64_t operator()(const Cluster&, NodeId node) const noexcept { return added[index(node)]; }
};

template <class Policies>
void go_for(const Cluster& cluster, const Scope& scope, const Policies& policies, const Wanted& wanted,
            const GoalOptions& options, ExecutorRef executor, Budget& budget, GoalResult& best) {
    static constexpr std::size_t prices_apart = 20;
    Options at = options;
    Rounds rounds(cluster, scope, at, executor, budget);
    const auto& joined = rounds.joined();
    auto missing = options.count - best.available_before;  // weight that a plan needs at least
    std::size_t looked_at = 0;                             // chains
    // The first chains that are enough, if ordering them into waves loses none and nothing moves onto places.
    const auto look = [&] {
        for (auto chains = looked_at + 1; chains <= joined.chains() && !best.goal_reached; ++chains) {
            if (joined.weight(chains) < missing) continue;
            auto plan = joined.plan(budget, chains);
            appraise(cluster, policies, at.price, plan);
            const auto after = wanted.in(apply(cluster, plan.plan));
            // Where tasks take about as many places as they leave, not every chain is worth a look.
            missing = joined.weight(chains) + std::max(options.count - after, joined.weight(chains) / 8);
            if (after <= best.available_after) continue;
            best.result = std::move(plan);
            best.available_after = after;
            best.goal_reached = after >= options.count;
        }
        looked_at = joined.chains();
    };
    // At a price of 0 nodes that add nothing would be vacated as well.
    const auto prices =
        ladder(cluster, scope, policies, missing, prices_apart, std::max<std::int64_t>(1, options.price));
    for (std::size_t level = 0; level < prices.size() && !best.goal_reached && !budget.exhausted(); ++level) {
        at.price = prices[level];
        auto now = with_limits(policies, at);
        now.switches.exchange_steps /= static_cast<std::int64_t>(prices.size());
        if (level + 1 < prices.size()) {
            now.switches.most_rounds = 1;
            now.switches.deepest = std::min(now.switches.deepest, 2);
        }
        rounds.run(now, true);
        look();
        if (best.goal_reached) break;
        rounds.exchange(now, level);
        look();
    }
    if (!best.goal_reached && joined.chains() > 0) {
        missing = joined.weight(joined.chains());
        looked_at = joined.chains() - 1;
        look();
    }
    best.result.stop_reason = joined.stop_reason(budget);
}

GPUSCHED_INTERNAL void validate_goal(const Cluster& cluster, const GoalOptions& options) {
    validate(options, cluster);
    Problems problems;
    check_fields(problems, options);
    if (!options.gpu_model.empty() && !cluster.inventory().gpu_models.find(options.gpu_model))
        problems.add(bad_value("gpu_model", quoted(options.gpu_model), "a GPU model of the cluster"));
    if (options.preset == Preset::ipc)
        problems.add(bad_value("preset", enum_name(options.preset), "fast or best"));
    if (options.objective != Objective{})
        problems.add(
            bad_value("objective", enum_name(options.objective), "its default: the goal says what counts"));
    if (options.polish_time)
        problems.add(
            bad_value("polish_time", number_text(*options.polish_time), "none: the search ends at the goal"));
    problems.throw_if_any();
}

}  // namespace detail

GPUSCHED_INLINE GoalResult reach_goal(const Cluster& cluster, const GoalOptions& options,
                                      const Context& context) {
    detail::validate_goal(cluster, options);
    detail::require_lp(options.bound_method, context);
    Budget budget(context, options.time_limit);
    const detail::Threads threads(options, context);
    const auto executor = threads.executor();
    const detail::Wanted wanted(cluster, options);
    GoalResult best;
    best.available_before = best.available_after = wanted.in(cluster);
    best.goal_reached = best.available_before >= options.count;
    best.result.stats.price = options.price;
    const auto scope = make_scope(cluster, options);
    if (!best.goal_reached) {
        std::vector<std::int64_t> added(cluster.node_slots());
        for (const auto node : cluster.nodes())
            added[index(node)] =
                std::max<std::int64_t>(0, wanted.on_empty(cluster, node) - wanted.on(cluster, node));
        const detail::AddedWeight weight{added};
        const auto policies = options.preset == Preset::fast ? presets::fast(weight) : presets::best(weight);
        detail::go_for(cluster, scope, policies, wanted, options, executor, budget, best);
    }
    best.result.plan.bound =
        detail::bound(cluster, scope, options.bound_method, context.lp, budget, executor);
    return best;
}

}  // namespace GPUSCHED_NAMESPACE::consolidation
