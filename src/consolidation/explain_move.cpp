// SPDX-License-Identifier: Apache-2.0
#include "consolidation/explain_parts.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/ejection_rules.hpp>
#include <gpusched/consolidation/explain_move.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/consolidation/value.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::consolidation {

namespace detail {

// The fewest movable tasks, all easier to place, that could leave the node for the task; of several such sets the one whose tasks
// have moved already, then the smallest. The obstacle is looked for again without them, so that all constraints count.
class VictimChoice {
  public:
    /// @param rule of the caller, in the state of `after`
    VictimChoice(const Cluster& before, Cluster& after, const Scope& scope, const AnyPlacementRule& rule,
                 TaskId task, NodeId node)
        : cluster_(after), rule_(rule), task_(task), node_(node) {
        for (const auto other : after.tasks_on(node))
            if (scope.movable[index(other)] && easier(after, other, task))
                candidates_.push_back({other, before.node_of(other) != node});
        std::sort(candidates_.begin(), candidates_.end(), [&](const Victim& a, const Victim& b) {
            return std::pair(size({&a, 1}), a.task) < std::pair(size({&b, 1}), b.task);
        });
    }

    /// Sets of so many tasks are tried one by one up to so many sets; beyond that one of which no task can be left out is returned.
    static constexpr std::size_t most_sets = 20'000;
    [[nodiscard]] std::vector<TaskId> fewest() {
        std::vector<Victim> best;
        std::size_t sets = 1;
        for (std::size_t count = 1; count <= candidates_.size(); ++count) {
            sets = sets * (candidates_.size() - count + 1) / count;
            if (sets > most_sets) return tasks(irreducible());
            chosen_.clear();
            extend(0, count, best);
            if (!best.empty()) return tasks(best);
        }
        return {};
    }

  private:
    using Size = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
    [[nodiscard]] Size size(std::span<const Victim> victims) const {
        Size sum{};
        for (const auto& v : victims) {
            std::get<0>(sum) += !v.moved;
            std::get<1>(sum) += cluster_.gpu_milli(v.task);
            std::get<2>(sum) += cluster_.inventory().tasks.cpu_milli[index(v.task)];
        }
        return sum;
    }
    [[nodiscard]] bool fits_without(std::span<const Victim> victims) {
        const auto mark = cluster_.checkpoint();
        for (const auto& victim : victims) {
            cluster_.remove(victim.task);
            rule_.leave(cluster_, victim.task, node_);
        }
        const bool fits =
            find_obstacle(cluster_, task_, node_) == Obstacle::none && rule_.allows(cluster_, task_, node_);
        cluster_.rollback(mark);
        for (const auto& victim : victims) rule_.enter(cluster_, victim.task, node_);
        return fits;
    }
    void extend(std::size_t from, std::size_t more, std::vector<Victim>& best) {
        if (more == 0) {
            if ((best.empty() || size(chosen_) < size(best)) && fits_without(chosen_)) best = chosen_;
            return;
        }
        for (auto next = from; next + more <= candidates_.size(); ++next) {
            chosen_.push_back(candidates_[next]);
            extend(next + 1, more - 1, best);
            chosen_.pop_back();
        }
    }
    [[nodiscard]] std::vector<Victim> irreducible() {
        auto left = candidates_;
        if (!fits_without(left)) return {};
        for (const auto& candidate : candidates_) {
            auto fewer = left;
            std::erase_if(fewer, [&](const Victim& v) { return v.task == candidate.task; });
            if (fits_without(fewer)) left = std::move(fewer);
        }
        return left;
    }
    [[nodiscard]] static std::vector<TaskId> tasks(std::span<const Victim> victims) {
        std::vector<TaskId> result;
        for (const auto& victim : victims) result.push_back(victim.task);
        return result;
    }

    Cluster& cluster_;
    AnyPlacementRule rule_;
    TaskId task_;
    NodeId node_;
    std::vector<Victim> candidates_, chosen_;
};

std::string in_words(const Cluster& cluster, const MoveExplanation& e, const Options& options,
                     bool after_plan) {
    auto text = "task " + gpusched::quoted(cluster.name(e.task));
    const auto to = "node " + gpusched::quoted(cluster.name(e.to_node));
    switch (e.fate) {
    case MoveFate::not_placed:
        if (e.from_node != none<NodeId>)
            return text + " runs nowhere before the plan, which places it on node " +
                   gpusched::quoted(cluster.name(e.from_node));
        return text + (cluster.is_placed(e.task) ? " is evicted by the plan" : " runs nowhere");
    case MoveFate::is_there:
        return text + " is on " + to + (after_plan ? " when the plan is done" : " already");
    case MoveFate::task_stays:
        return text + " must stay (" + in_words(e.fixed_by) + ")";
    case MoveFate::possible:
        text += " could move to " + to;
        break;
    case MoveFate::node_closed:
        text += " cannot move to " + to + ": the node receives nothing (" + in_words(e.closed_by) + ")";
        break;
    case MoveFate::obstacle:
        text += " cannot move to " + to + " (" + enum_name(e.obstacle) + ")";
        for (std::size_t v = 0; v < e.victims.size(); ++v)
            text += (v == 0 ? ", unless these leave it: task " : ", task ") +
                    gpusched::quoted(cluster.name(e.victims[v]));
        break;
    case MoveFate::refused:
        text += " cannot move to " + to + ": rule " + gpusched::quoted(options.rule.name()) + " refuses it";
        break;
    case MoveFate::no_turn:
        text += " finds no turn to move to " + to;
        break;
    }
    return text + "; the move adds " + std::to_string(e.weight) + " to the weight and " +
           std::to_string(e.cost) + " to the cost, " + std::to_string(e.value_milli) +
           " thousandths to the value at the price of " + std::to_string(options.price);
}

// The explanation without its text.
// @param after the cluster once the plan is done; as it was afterwards, too
// @param closed by NodeId, as `closed_nodes` gives it
// @param rule that of the options, in the state of `after`
MoveExplanation explain_move(const Cluster& cluster, Cluster& after, const Scope& scope,
                             std::span<const ClosedBy> closed, const AnyPlacementRule& rule, TaskId task,
                             NodeId node, const Options& options) {
    MoveExplanation result{
        .task = task, .from_node = after.node_of(task), .to_node = node, .victims = {}, .text = {}};
    if (!after.is_placed(task) || !cluster.is_placed(task)) {
        result.fate = MoveFate::not_placed;
    } else if (result.from_node == node) {
        result.fate = MoveFate::is_there;
    } else if (!scope.movable[index(task)]) {
        result.fate = MoveFate::task_stays;
        result.fixed_by = fixed_by(cluster, task, options);
    } else {
        result.closed_by = closed[index(node)];
        result.obstacle = find_obstacle(after, task, node);
        if (result.obstacle == Obstacle::not_eligible)
            result.obstacle = find_eligibility_obstacle(after, task, node);
        result.fate = result.closed_by != ClosedBy::none  ? MoveFate::node_closed
                      : result.obstacle != Obstacle::none ? MoveFate::obstacle
                      : rule.allows(after, task, node)    ? MoveFate::possible
                                                          : MoveFate::refused;
        if (result.fate == MoveFate::obstacle)
            result.victims = VictimChoice(cluster, after, scope, rule, task, node).fewest();
        const auto home = cluster.node_of(task);
        const bool had_moved = result.from_node != home || after.gpus_of(task) != cluster.gpus_of(task);
        const auto cost = cluster.inventory().tasks.move_cost[index(task)];
        // On its first node it is back where it was only if it finds its GPUs there.
        const bool back = node == home && gpus_fit(after, task, node, cluster.gpus_of(task));
        result.cost = back ? -cost : had_moved ? 0 : cost;
        std::int64_t vacated = 0, opened = 0;
        const auto count = [&](NodeId at, int sign) {
            (cluster.occupants(at) > 0 ? vacated : opened) += sign * weight_of(cluster, at, options);
        };
        if (after.occupants(result.from_node) == 1) count(result.from_node, 1);
        if (after.occupants(node) == 0) count(node, -1);
        result.weight = vacated + opened;
        result.value_milli = value_milli(vacated, result.cost, options.price) +
                             opening_milli(opened, options.open_price.value_or(milli));
    }
    return result;
}

}  // namespace detail

GPUSCHED_EXPORT MoveExplanation explain_move(const Cluster& cluster, TaskId task, NodeId node,
                                             const Options& options, const Plan& plan) {
    validate(options, cluster);
    Problems problems;
    if (!cluster.contains(task))
        problems.add("task: there is no task " + std::to_string(index(task)) + "; expected less than " +
                     std::to_string(cluster.task_slots()));
    if (!cluster.contains(node))
        problems.add("node: there is no node " + std::to_string(index(node)) + "; expected less than " +
                     std::to_string(cluster.node_slots()));
    problems.throw_if_any();
    auto after = apply(cluster, plan);
    const auto scope = make_scope(cluster, options);
    const auto closed = detail::closed_nodes(cluster, after, options);
    const auto rule = detail::rule_after(plan, after, options);
    auto result = detail::explain_move(cluster, after, scope, closed, rule, task, node, options);
    const bool after_plan = !plan.moves.empty() || !plan.evictions.empty() || !plan.placements.empty();
    result.text = detail::in_words(cluster, result, options, after_plan);
    return result;
}

}  // namespace gpusched::consolidation
