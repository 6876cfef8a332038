// SPDX-License-Identifier: Apache-2.0
// Makes slots of a shape on nodes that stay in use, by moving some of their tasks away in ejection chains.
#include "consolidation/goal_search.hpp"

#include <gpusched/consolidation/chain_search.hpp>
#include <gpusched/consolidation/exchange_search.hpp>
#include <gpusched/consolidation/search.hpp>
#include <gpusched/consolidation/waves.hpp>
#include <gpusched/core/detail/small_vector.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace gpusched::consolidation::detail {

/// The purpose of the current moves.
struct CurrentSlots {
    NodeId node = none<NodeId>;  // that tasks leave
    std::int64_t gain = 0;       // slots that it gains without them
    std::int64_t may_lose = 0;   // slots that each moved task may take on its destination
};

/// Ranks nodes on which a task takes no slots by tightest fit, then nodes on which it takes the fewest, up to
/// `may_lose`.
struct KeepSlots {
    const GoalCount* goal = nullptr;
    const CurrentSlots* current = nullptr;

    template <class Offer>
    bool visit(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        boost::container::small_vector<std::tuple<std::int64_t, std::size_t, NodeId>, 16> others;
        if (TightestFit{}.visit(cluster, index, task, [&](NodeId node) {
                if (node == cluster.node_of(task)) return false;
                // On the node that gains the slots, the loss is known only after all tasks have left.
                if (node != current->node && find_obstacle(cluster, task, node) == Obstacle::none)
                    if (const auto taken = goal->taken_by(cluster, task, node); taken > 0) {
                        if (taken <= current->may_lose) others.emplace_back(taken, others.size(), node);
                        return false;
                    }
                return offer(node);
            }))
            return true;
        std::sort(others.begin(), others.end());
        return std::any_of(others.begin(), others.end(),
                           [&](const auto& other) { return offer(std::get<NodeId>(other)); });
    }
    template <class Offer>
    bool visit_full(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        return TightestFit{}.visit_full(cluster, index, task, offer);
    }
};

/// Any tasks that suffice, the cheapest to move first; one task if none is needed. That task may be worth
/// more elsewhere: two tasks that exchange their places can make slots.
struct OneVictimAtLeast : RandomVictims {
    bool operator()(const Cluster& cluster, TaskId task, NodeId node, std::span<const Victim> movable,
                    std::vector<Victim>& victims) const {
        if (!RandomVictims::operator()(cluster, task, node, movable, victims)) return false;
        if (victims.empty() && !movable.empty()) victims.assign(1, movable[rng->below(movable.size())]);
        return !victims.empty();
    }
};

class SlotMaker {
  public:
    /// @param found whose plan is extended
    SlotMaker(const Cluster& cluster, const Scope& scope, const GoalCount& goal, const AnyPolicies& policies,
              const Options& options, Budget& budget, Result& found)
        : before_(cluster), scope_(any_may_run_empty(scope)), goal_(goal), options_(options), budget_(budget),
          found_(found), work_(cluster, scope_, options.rule), rng_(options.seed),
          policies_(for_slots(policies)), wide_policies_(with_any_victims(policies_)),
          search_(work_, policies_, 1, budget, found.stats),
          wide_search_(work_, wide_policies_, 1, budget, found.stats),
          in_few_nodes_(cluster.node_count() <= exchanged_together), closed_(cluster.node_slots()),
          may_empty_(scope.may_vacate), moved_(cluster.task_slots()), has_(cluster.node_slots()) {
        for (const auto& move : found.plan.moves) {
            work_.cluster.assign(move.task, move.to, move.gpus);
            work_.rule.move(work_.cluster, move.task, move.from, move.to);
            may_empty_[index(move.to)] = 0;
        }
        work_.cluster.commit();
        first_rule_ = work_.rule;
        nodes_.assign(cluster.nodes().begin(), cluster.nodes().end());
        work_.index.reset(work_.cluster, nodes_, scope_);
        for (const auto node : nodes_) {
            closed_[index(node)] = !scope.receives(node);
            has_[index(node)] = goal.on(work_.cluster, node);
        }
        for (const auto node : found.plan.vacated_nodes) {
            closed_[index(node)] = 1;
            work_.index.close(node);
        }
    }

    void run() {
        if (options_.max_moves) moves_left_ = *options_.max_moves - found_.stats.moves;
        if (options_.max_move_cost) cost_left_ = *options_.max_move_cost - found_.stats.move_cost;
        const auto start = work_.cluster;
        missing_ = goal_.target() - found_.stats.goal_after;
        const int deepest = std::min(options_.search.depth, policies_.switches.deepest);
        const auto continues = [&] { return missing_ > 0 && !budget_.exhausted(); };
        for (int depth = 1; depth <= deepest && continues(); ++depth) {
            pass(search_, depth, Workspace::passed);
            if (depth > 1 && continues()) pass(search_, depth, Workspace::may_return);
        }
        if (policies_.switches.exchange_steps > 0 && in_few_nodes_)
            for (int tries = 0; deepest > 1 && tries < most_wide_passes && continues(); ++tries)
                pass(wide_search_, deepest, Workspace::may_return);
        if (!steps_.empty()) extend_plan(start);
        if (found_.stop_reason == StopReason::completed)
            found_.stop_reason =
                over_budget_ && !goal_.is_reached_by(found_) ? StopReason::move_budget : budget_.reason();
    }

  private:
    using Search = ChainSearch<AnyPolicies>;
    static constexpr int most_failures = 100;  // in succession
    static constexpr int most_sets = 256;      // of one node
    static constexpr int most_wide_passes = 8;
    static constexpr std::size_t most_ways = 8;

    /// Tasks of a node that leave it.
    struct Set {
        std::int64_t cost = 0;  // of tasks that have not moved yet
        std::int64_t gain = 0;  // slots
        std::vector<TaskId> tasks{};
        bool operator<(const Set& other) const {
            return std::tuple(cost, tasks.size()) < std::tuple(other.cost, other.tasks.size());
        }
    };

    static Scope any_may_run_empty(Scope scope) {
        scope.may_vacate.assign(scope.may_vacate.size(), 0);
        return scope;
    }
    [[nodiscard]] AnyPolicies for_slots(const AnyPolicies& policies) const {
        auto result = with_limits(policies, options_);
        result.destination_ranking = KeepSlots{&goal_, &current_};
        result.node_weight = [this](const Cluster&, NodeId) { return current_.gain; };
        return result;
    }
    [[nodiscard]] AnyPolicies with_any_victims(AnyPolicies policies) {
        policies.ejection_rule = OneVictimAtLeast{{.rng = &rng_, .frugal = true}};
        return policies;
    }

    // Tries nodes, the cheapest first, until there are enough slots or too many failed in succession.
    void pass(Search& search, int depth, std::uint8_t meanwhile) {
        std::vector<std::pair<std::int64_t, NodeId>> queue;  // a heap
        const auto enter = [&](std::int64_t cost, NodeId node) {
            queue.emplace_back(cost, node);
            std::push_heap(queue.begin(), queue.end(), std::greater<>{});
        };
        for (const auto node : nodes_)
            if (const auto sets = ways(node); !sets.empty()) enter(sets.front().cost, node);
        work_.forget_failures();
        for (int failures = 0;
             !queue.empty() && missing_ > 0 && failures < most_failures && !budget_.exhausted();) {
            const auto [cost, node] = queue.front();
            std::pop_heap(queue.begin(), queue.end(), std::greater<>{});
            queue.pop_back();
            auto sets = ways(node);  // other tasks may have moved onto it since
            if (sets.empty()) continue;
            if (sets.front().cost > cost) {
                enter(sets.front().cost, node);
                continue;
            }
            const bool made = std::any_of(sets.begin(), sets.end(), [&](Set& set) {
                return make(search, node, set, depth, meanwhile);
            });
            failures = made ? 0 : failures + 1;
            if (!made) continue;
            work_.forget_failures();
            if (const auto more = ways(node); !more.empty()) enter(more.front().cost, node);
        }
    }

    /// Returns sets of tasks without which the node has more slots, the cheapest first.
    [[nodiscard]] std::vector<Set> ways(NodeId node) {
        auto& now = work_.cluster;
        const auto has = has_[index(node)];
        if (goal_.on_empty(now, node) <= has) return {};
        std::vector<TaskId> movable;
        for (const auto task : now.tasks_on(node))
            if (scope_.movable[index(task)]) movable.push_back(task);
        std::vector<Set> found;
        int examined = 0;
        Set set;
        const auto extend = [&](const auto& self, std::size_t from, std::size_t more) -> void {
            if (more == 0) {
                ++examined;
                set.gain = goal_.on(now, node) - has;
                if (set.gain > 0) found.push_back(set);
                return;
            }
            for (auto next = from; next + more <= movable.size() && examined < most_sets; ++next) {
                const auto task = movable[next];
                const auto cost =
                    before_.node_of(task) == node ? now.inventory().tasks.move_cost[index(task)] : 0;
                const auto here = now.checkpoint();
                now.remove(task);
                set.tasks.push_back(task);
                set.cost += cost;
                self(self, next + 1, more - 1);
                set.tasks.pop_back();
                set.cost -= cost;
                now.rollback(here);
            }
        };
        for (std::size_t count = 1;
             count <= movable.size() && examined < most_sets && found.size() < most_ways; ++count)
            extend(extend, 0, count);
        std::stable_sort(found.begin(), found.end());
        found.resize(std::min(found.size(), most_ways));
        return found;
    }

    /// @param meanwhile see `ChainSearch::move_off`
    /// @return false if nothing was moved
    bool make(Search& search, NodeId from, Set& set, int depth, std::uint8_t meanwhile) {
        // Earlier searches failed with another node closed, which matters if there are few nodes.
        if (in_few_nodes_) work_.forget_failures();
        current_ = {from, set.gain, set.gain - (&search == &search_ ? 1 : 0)};
        if (meanwhile == Workspace::passed) work_.index.close(from);
        auto& moves = search.moves();
        bool made = search.move_off(from, set.tasks, depth, meanwhile);
        if (made && !keep(moves, from)) {
            moves.drop();
            made = false;
        }
        if (meanwhile == Workspace::passed && !closed_[index(from)]) work_.index.open(work_.cluster, from);
        return made;
    }
    /// Keeps moves that make slots at an acceptable cost; leaves other moves open and returns false.
    bool keep(OpenMoves<AnyPolicies>& moves, NodeId from) {
        const auto& now = work_.cluster;
        const auto steps = moves.steps();
        std::vector<NodeId> touched{from};
        std::vector<TaskId> tasks;
        for (const auto& step : steps) {
            touched.push_back(step.from);
            touched.push_back(step.to);
            if (!moved_[index(step.task)]) tasks.push_back(step.task);
        }
        const auto remove_duplicates = [](auto& list) {
            std::sort(list.begin(), list.end());
            list.erase(std::unique(list.begin(), list.end()), list.end());
        };
        remove_duplicates(touched);
        remove_duplicates(tasks);
        const auto count = static_cast<std::int64_t>(tasks.size());
        std::int64_t cost = 0, gained = 0;
        for (const auto task : tasks) cost += now.inventory().tasks.move_cost[index(task)];
        for (const auto node : touched) gained += goal_.on(now, node) - has_[index(node)];
        const bool within = (!moves_left_ || count <= *moves_left_) && (!cost_left_ || cost <= *cost_left_);
        const bool emptied = now.occupants(from) == 0;
        const bool refilled =
            std::any_of(steps.begin(), steps.end(), [&](const Step& step) { return step.to == from; });
        const bool good = gained > 0 && is_worth(gained, moves.chains().cost, options_.price) &&
                          (!emptied || (may_empty_[index(from)] && !refilled));
        over_budget_ = over_budget_ || (good && !within);
        if (!good || !within) return false;
        if (moves_left_) *moves_left_ -= count;
        if (cost_left_) *cost_left_ -= cost;
        missing_ -= gained;
        for (auto step : moves.close().steps) {
            step.chain = chains_;
            steps_.push_back(step);
            may_empty_[index(step.to)] = 0;
            moved_[index(step.task)] = 1;
        }
        ++chains_;
        for (const auto node : touched) has_[index(node)] = goal_.on(now, node);
        return true;
    }

    // Appends the steps to the plan if it then has more slots.
    void extend_plan(const Cluster& start) {
        auto& result = found_;
        // A node that ran empty may have received tasks again. A node that is empty in the end receives none.
        for (const auto node : nodes_)
            if (start.occupants(node) > 0 && work_.cluster.occupants(node) == 0) closed_[index(node)] = 1;
        Options limits = options_;
        limits.rule = first_rule_;
        if (limits.max_moves) *limits.max_moves -= result.stats.moves;
        if (limits.max_move_cost) *limits.max_move_cost -= result.stats.move_cost;
        auto order = order_into_waves(start, steps_, closed_, limits, may_empty_);
        const auto available = goal_.in(order.after);
        if (available <= result.stats.goal_after) return;
        auto& plan = result.plan;
        std::uint32_t chains = 0;
        for (const auto& move : plan.moves)
            if (move.chain != Move::no_chain) chains = std::max(chains, move.chain + 1);
        for (auto move : order.moves) {
            move.wave += plan.waves;
            if (move.chain != Move::no_chain) move.chain += chains;
            plan.moves.push_back(move);
        }
        plan.waves += order.waves;
        plan.vacated_nodes = vacated_nodes(before_, order.after);
        static_cast<PlanStatistics&>(result.stats) = plan_statistics(before_, order.after, plan);
        result.stats.hops += order.hops;
        result.stats.dropped_chains += order.dropped_chains;
        result.stats.goal_after = available;
    }

    const Cluster& before_;
    Scope scope_;
    const GoalCount& goal_;
    const Options& options_;
    Budget& budget_;
    Result& found_;
    CurrentSlots current_;
    Workspace work_;
    Rng rng_;
    AnyPolicies policies_, wide_policies_;
    Search search_, wide_search_;
    bool in_few_nodes_;
    std::vector<NodeId> nodes_;
    std::vector<std::uint8_t> closed_, may_empty_;  // by node
    std::vector<std::uint8_t> moved_;               // by task: by one of `steps_`
    std::vector<std::int64_t> has_;                 // slots by node
    AnyPlacementRule first_rule_;                   // in the state before `steps_`
    std::vector<Step> steps_;
    std::uint32_t chains_ = 0;
    std::int64_t missing_ = 0;
    std::optional<std::int64_t> moves_left_, cost_left_;
    bool over_budget_ = false;
};

void make_slots(const Cluster& cluster, const Scope& scope, const GoalCount& goal,
                const AnyPolicies& policies, const Options& options, Budget& budget, Result& found) {
    SlotMaker(cluster, scope, goal, policies, options, budget, found).run();
}

}  // namespace gpusched::consolidation::detail
