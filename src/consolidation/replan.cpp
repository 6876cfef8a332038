// SPDX-License-Identifier: Apache-2.0
// Repeats the moves of an earlier plan that are still possible, and continues from there.
#include "consolidation/explain_parts.hpp"
#include "consolidation/goal_search.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/replan.hpp>
#include <gpusched/consolidation/search.hpp>
#include <gpusched/consolidation/waves.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::consolidation {

namespace detail {

static NodeId find_node(const Cluster& cluster, const std::string& name) {
    const auto found = cluster.inventory().nodes.names.find(name);
    return found ? make_id<NodeId>(*found) : none<NodeId>;
}

// Returns the moves of the plan whose task and destination still exist.
static std::vector<WantedMove> remaining_moves(const Cluster& cluster, const PlanSpec& plan) {
    std::vector<WantedMove> moves;
    for (const auto& move : plan.moves) {
        const auto task = cluster.inventory().tasks.names.find(move.task);
        const auto to = find_node(cluster, move.to);
        if (!task || to == none<NodeId>) continue;
        GpuMask gpus = 0;
        for (const auto gpu : move.gpus)
            if (gpu >= 0 && gpu < max_gpus_per_node) gpus |= gpu_bit(gpu);
        moves.push_back({make_id<TaskId>(*task), to, gpus});
    }
    return moves;
}

/// Ranks the destination of the last plan first, then the destinations of `others`.
struct PlannedFirst {
    std::vector<NodeId> planned;   // by TaskId; none = the last plan does not move the task
    AnyDestinationRanking others;  // for tasks that do not fit there

    template <class Offer>
    bool visit(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        return offer_planned(index, task, offer) || others.visit(cluster, index, task, offer);
    }
    template <class Offer>
    bool visit_full(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        return offer_planned(index, task, offer) || others.visit_full(cluster, index, task, offer);
    }

  private:
    template <class Offer>
    bool offer_planned(const FreeIndex& index, TaskId task, Offer&& offer) const {
        const auto node = planned[gpusched::index(task)];
        return node != none<NodeId> && index.is_open(node) && offer(node);
    }
};

// Makes policies prefer the destinations of the last plan, and the nodes that it vacates in the order in which
// it vacates them, in one round.
static AnyPolicies following(const Cluster& cluster, const PlanSpec& last, AnyPolicies policies) {
    PlannedFirst destinations{std::vector<NodeId>(cluster.task_slots(), none<NodeId>),
                              std::move(policies.destination_ranking)};
    // By NodeId: 0 = the plan does not vacate it, else negative and ascending.
    std::vector<std::int64_t> turns(cluster.node_slots());
    for (const auto& name : last.vacated_nodes)
        if (const auto node = find_node(cluster, name); node != none<NodeId>) turns[index(node)] = -1;
    // A node's turn is that of the first chain that serves it; without chains, that of the first move that
    // leaves it.
    constexpr auto first = std::numeric_limits<std::int64_t>::min() / 2;
    for (std::size_t i = 0; i < last.moves.size(); ++i) {
        const auto& move = last.moves[i];
        const auto task = cluster.inventory().tasks.names.find(move.task);
        const auto to = find_node(cluster, move.to);
        if (task && to != none<NodeId>) destinations.planned[*task] = to;
        const auto source = find_node(cluster, move.serves.empty() ? move.from : move.serves);
        if (source == none<NodeId>) continue;
        auto& turn = turns[index(source)];
        if (turn != 0) turn = std::min(turn, first + move.chain.value_or(static_cast<std::int64_t>(i)));
    }
    policies.destination_ranking = std::move(destinations);
    policies.node_order = [turns = std::move(turns), others = policies.node_order](const Cluster& c,
                                                                                   NodeId node) {
        return turns[index(node)] != 0 ? turns[index(node)] : others(c, node);
    };
    policies.switches.most_rounds = 1;
    policies.switches.several_starts = false;
    policies.switches.exchange_steps = 0;
    policies.switches.exact_when_tiny = false;
    return policies;
}

/// Makes the moves of an earlier plan again.
class Repetition {
  public:
    Repetition(Workspace& work, const AnyPolicies& policies, Statistics& stats)
        : work_(work), policies_(policies), moves_(work, policies, stats) {}

    /// Makes every move that is possible, repeatedly, because one may free the place of another. Then returns
    /// tasks whose node is not vacated to that node. Leaves these moves made on the workspace's cluster.
    /// @return the moves in parts that share no node, each followed by its vacated nodes, without the parts
    ///     that the acceptance refuses
    std::vector<std::vector<Vacated>> run(std::span<const WantedMove> last, std::span<const NodeId> nodes) {
        work_.index.reset(work_.cluster, nodes, work_.scope);
        std::vector<WantedMove> waiting(last.begin(), last.end());
        for (bool more = true; more && !waiting.empty();) {
            const auto before = waiting.size();
            std::erase_if(waiting, [&](const WantedMove& move) { return make(move); });
            more = waiting.size() < before;
        }
        // A task that returns may free the place of another one that returns.
        for (bool more = true; more;) {
            more = false;
            for (const auto& move : last)
                more = (is_away(move.task) && !is_vacated(work_.snapshot.node_of(move.task)) &&
                        moves_.send_home(move.task, false)) ||
                       more;
        }
        return parts();
    }

  private:
    [[nodiscard]] bool is_away(TaskId task) const {
        return work_.snapshot.is_placed(task) && work_.cluster.node_of(task) != work_.snapshot.node_of(task);
    }
    [[nodiscard]] bool is_vacated(NodeId node) const {
        return work_.scope.may_vacate[index(node)] && work_.snapshot.occupants(node) > 0 &&
               work_.cluster.occupants(node) == 0;
    }
    /// @return whether the move needs no further attempt
    bool make(const WantedMove& move) {
        const auto& cluster = work_.cluster;
        if (!cluster.is_placed(move.task) || !work_.scope.movable[index(move.task)] ||
            cluster.node_of(move.task) == move.to)
            return true;
        if (!work_.index.is_open(move.to) && !work_.scope.opens(move.to)) return true;
        return moves_.place(move.task, move.to, move.gpus);
    }

    std::vector<std::vector<Vacated>> parts() {
        const auto& cluster = work_.cluster;
        const auto steps = moves_.steps();
        // Union-find of the nodes that moves connect.
        std::vector<std::uint32_t> root(cluster.node_slots());
        std::iota(root.begin(), root.end(), 0u);
        const auto find = [&](NodeId node) {
            auto at = static_cast<std::uint32_t>(index(node));
            while (root[at] != at) at = root[at] = root[root[at]];
            return at;
        };
        for (const auto& step : steps) root[find(step.from)] = find(step.to);
        std::vector<std::uint32_t> of(cluster.node_slots(), none_yet);
        std::vector<std::vector<Vacated>> found;
        const auto part_of = [&](NodeId node) -> std::vector<Vacated>& {
            auto& at = of[find(node)];
            if (at == none_yet) {
                at = static_cast<std::uint32_t>(found.size());
                found.push_back({Vacated{}});
            }
            return found[at];
        };
        for (const auto& step : steps) part_of(step.to).front().steps.push_back(step);
        std::vector<std::uint8_t> seen(cluster.task_slots()), forbidden(found.size());
        for (const auto& step : steps) {
            auto& part = part_of(step.from);
            const auto home = work_.snapshot.node_of(step.task);
            if (work_.snapshot.occupants(step.from) > 0 && cluster.occupants(step.from) == 0 &&
                !is_vacated(step.from))
                forbidden[of[find(step.from)]] = 1;  // this node must stay in use
            if (std::exchange(seen[index(step.task)], std::uint8_t{1}) || !is_away(step.task)) continue;
            auto& sum = part.front().chains;
            ++sum.moves;
            sum.cost += cluster.inventory().tasks.move_cost[index(step.task)];
            if (is_vacated(home)) ++sum.tasks;
            for (const auto node : {home, cluster.node_of(step.task)}) {
                const bool known = std::any_of(part.begin(), part.end(), [&](const Vacated& other) {
                    return other.chains.node == node;
                });
                if (known) continue;
                if (is_vacated(node)) {
                    Vacated vacated;
                    vacated.chains.node = node;
                    vacated.chains.gain = policies_.node_weight(work_.snapshot, node);
                    sum.gain += vacated.chains.gain;
                    part.push_back(std::move(vacated));
                } else if (work_.scope.opens(node) && cluster.occupants(node) > 0 && node != home) {
                    opened_.push_back(node);
                }
            }
        }
        std::sort(opened_.begin(), opened_.end());
        opened_.erase(std::unique(opened_.begin(), opened_.end()), opened_.end());
        for (const auto node : opened_) {
            auto& sum = part_of(node).front().chains;
            ++sum.opened;
            sum.opening += moves_.cost_of_opening(node);
        }
        std::size_t kept = 0;
        for (std::size_t p = 0; p < found.size(); ++p)
            if (!forbidden[p] && is_accepted(found[p])) std::swap(found[kept++], found[p]);
        found.resize(kept);
        // The first entry has the moves and the sums. With a single node, they belong to that node.
        for (auto& part : found)
            if (part.size() == 2) {
                part[0].chains.node = part[1].chains.node;
                part.pop_back();
            } else {
                for (std::size_t i = 1; i < part.size(); ++i) part[i].chains.gain = 0;
            }
        return found;
    }
    // Applies the acceptance to a part as if it were one node, with the mean number of other tasks per node.
    [[nodiscard]] bool is_accepted(const std::vector<Vacated>& part) const {
        const auto nodes = static_cast<std::int64_t>(part.size()) - 1;
        if (nodes == 0) return false;
        auto mean = part.front().chains;
        mean.node = part[1].chains.node;
        mean.moves = mean.tasks + (mean.moves - mean.tasks + nodes - 1) / nodes;
        return policies_.acceptance(mean);
    }

    static constexpr std::uint32_t none_yet = 0xFFFFFFFFu;
    Workspace& work_;
    const AnyPolicies& policies_;
    OpenMoves<AnyPolicies> moves_;
    std::vector<NodeId> opened_;
};

void repeat_moves(Rounds& rounds, const Cluster& cluster, const AnyPolicies& policies,
                  std::span<const WantedMove> moves) {
    rounds.add([&](Workspace& work, Statistics& counters) {
        const std::vector<NodeId> nodes(cluster.nodes().begin(), cluster.nodes().end());
        return Repetition(work, policies, counters).run(moves, nodes);
    });
}

// The rest of the last plan and one round from there, or one round from scratch, if it is better.
static Result search_after(const Cluster& cluster, const Scope& scope, const AnyPolicies& policies,
                           std::span<const WantedMove> last, const Options& options, ExecutorRef executor,
                           Budget& budget) {
    Rounds rounds(cluster, scope, options, executor, budget);
    repeat_moves(rounds, cluster, policies, last);
    rounds.run(policies);
    auto best = rounds.joined().finish(budget);
    appraise(cluster, policies.node_weight, options.price, options.open_price, best);
    if (!budget.exhausted()) {
        auto fresh = search_from_scratch(cluster, scope, policies, options, executor, budget);
        const bool better = worth(fresh) > worth(best);
        keep_better(best, std::move(fresh), better);
    }
    if (best.stats.value_milli < 0) clear_plan(cluster, best);
    best.stop_reason = rounds.joined().stop_reason(budget);
    return best;
}

// Continues from the rest of the last plan towards a goal, or starts from scratch, if that comes closer or is
// much cheaper.
static Result replan_goal(const Cluster& cluster, const PlanSpec& last, const Options& options,
                          const Context& context) {
    const Budget clock(context, options.time_limit);
    const auto moves = remaining_moves(cluster, last);
    auto repeated = search_goal(cluster, options, context, &moves);
    if (repeated.stop_reason != StopReason::completed) return repeated;
    auto rest = options;
    if (rest.time_limit) rest.time_limit = std::max(0.0, *rest.time_limit - clock.elapsed_s());
    auto fresh = search_goal(cluster, rest, context);
    // Moves of the last plan may be approved already, so they may cost a little more.
    constexpr double enough = 0.9;
    const auto units = [](const Result& result) {
        const auto& goal = *result.plan.goal;
        return std::min(result.stats.goal_after, goal.empty_nodes.value_or(goal.count.value_or(1)));
    };
    const bool closer = units(fresh) > units(repeated);
    const bool cheaper =
        units(fresh) == units(repeated) && static_cast<double>(fresh.stats.relocation_cost) <
                                               enough * static_cast<double>(repeated.stats.relocation_cost);
    return closer || cheaper ? std::move(fresh) : std::move(repeated);
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<DroppedFromPlan> dropped_moves(const Cluster& cluster, const PlanSpec& last,
                                                           const PlanSpec& plan, const Options& options) {
    std::map<std::string_view, std::string_view> made;  // the last place of each moved task
    for (const auto& move : plan.moves) made[move.task] = move.to;
    std::map<std::string_view, std::size_t> last_move;
    for (std::size_t i = 0; i < last.moves.size(); ++i) last_move[last.moves[i].task] = i;
    const auto now = resolve(plan, cluster);
    std::vector<DroppedFromPlan> out;
    for (std::size_t i = 0; i < last.moves.size(); ++i) {
        const auto& move = last.moves[i];
        if (last_move[move.task] != i) continue;
        if (const auto found = made.find(move.task); found != made.end() && found->second == move.to)
            continue;
        const auto drop = [&](std::string reason) { out.push_back({i, std::move(reason)}); };
        const auto task = cluster.inventory().tasks.names.find(move.task);
        const auto to = detail::find_node(cluster, move.to);
        const auto id = task ? make_id<TaskId>(*task) : none<TaskId>;
        if (!task)
            drop("it no longer exists");
        else if (!cluster.is_placed(id))
            drop("it is pending");
        else if (to == none<NodeId>)
            drop("node " + gpusched::quoted(move.to) + " no longer exists");
        else if (cluster.node_of(id) == to)
            drop("it is already there");
        else if (made.contains(move.task))
            drop("it moves to node " + gpusched::quoted(made[move.task]) + " instead");
        else if (const auto why = explain_move(cluster, id, to, options, now); why.fate != MoveFate::possible)
            drop("it " + detail::fate_text(cluster, why, options, true));
        else
            drop("possible, but not in the new plan");
    }
    return out;
}

GPUSCHED_EXPORT Result replan(const Cluster& cluster, const PlanSpec& last, const Options& options,
                              const Context& context) {
    validate(options, cluster);
    if (options.goal) return detail::replan_goal(cluster, last, options, context);
    const Budget clock(context, options.time_limit);
    const auto policies = make_policies(options.preset, {}, options.objective);
    const auto moves = detail::remaining_moves(cluster, last);
    auto repeated = detail::consolidate_with(
        cluster, detail::following(cluster, last, policies), options, context,
        [&](const Scope& scope, const AnyPolicies& limited, ExecutorRef executor, Budget& budget) {
            return detail::search_after(cluster, scope, limited, moves, options, executor, budget);
        });
    // With few nodes the complete search takes little time, and one round may be far from it. A little value
    // is given up to keep the moves of the last plan, which may be approved already.
    constexpr std::size_t few_nodes = 1000;
    constexpr double enough = 0.995;
    if (cluster.node_count() > few_nodes || repeated.stop_reason != StopReason::completed) return repeated;
    auto rest = options;
    if (rest.time_limit) rest.time_limit = std::max(0.0, *rest.time_limit - clock.elapsed_s());
    auto fresh = detail::consolidate_validated(cluster, policies, rest, context);
    const bool better = static_cast<double>(repeated.stats.value_milli) <
                        enough * static_cast<double>(fresh.stats.value_milli);
    return better ? std::move(fresh) : std::move(repeated);
}

}  // namespace gpusched::consolidation
