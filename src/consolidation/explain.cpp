// SPDX-License-Identifier: Apache-2.0
#include "consolidation/explain_parts.hpp"

#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/config.hpp>
#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/value.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace gpusched::consolidation {

namespace detail {

std::string in_words(FixedBy by) {
    switch (by) {
    case FixedBy::never_moves:
        return "nobody would start it anew: its how is none";
    case FixedBy::exempt_node:
        return "exempt node";
    case FixedBy::no_disruption:
        return "max_disrupted is 0";
    case FixedBy::budget:
        return "disruption budget";
    case FixedBy::core_member:
        return "core member";
    default:
        return std::string(enum_name(by));
    }
}

std::string in_words(ClosedBy by) {
    switch (by) {
    case ClosedBy::emptied:
        return "vacated by the plan";
    case ClosedBy::empty:
        return "empty before the plan";
    case ClosedBy::to_clear:
        return "to be cleared itself";
    default:
        return std::string(enum_name(by));
    }
}

FixedBy fixed_by(const Cluster& cluster, TaskId task, const Options& options) {
    const auto& t = cluster.inventory().tasks;
    const auto i = index(task);
    if (t.daemon[i]) return FixedBy::daemon;
    if (t.locked[i]) return FixedBy::locked;
    if (t.standby[i]) return FixedBy::standby;
    if (cluster.inventory().task_affinities[t.affinities[i]].cpu_local) return FixedBy::cpu_local;
    if (t.how(task) == Mobility::none) return FixedBy::never_moves;
    const auto node = cluster.node_of(task);
    if (std::find(options.exempt.begin(), options.exempt.end(), node) != options.exempt.end())
        return FixedBy::exempt_node;
    const auto job = t.job[i];
    if (options.max_disrupted == 0 ||
        (job != none<JobId> && cluster.inventory().job_max_disrupted[index(job)] == 0))
        return FixedBy::no_disruption;
    if (no_budget_left(cluster.inventory(), task)) return FixedBy::budget;
    return FixedBy::core_member;
}

// What the node counts for in the value of a plan.
std::int64_t weight_of(const Cluster& cluster, NodeId node, const Options& options) {
    return options.objective == Objective::gpus ? gpu_count(cluster.healthy_gpus(node)) : 1;
}

// What the node is worth, and the least that moving its own tasks costs.
struct PriceOfNode {
    std::int64_t weight, cost = 0;
};
static PriceOfNode price_of_node(const Cluster& cluster, const Scope& scope, NodeId node,
                                 const Options& options) {
    PriceOfNode result{weight_of(cluster, node, options)};
    for (const auto task : cluster.tasks_on(node))
        if (scope.movable[index(task)]) result.cost += cluster.inventory().tasks.move_cost[index(task)];
    return result;
}

static std::string counted(std::int64_t number, const char* what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

// By node, why nothing may move onto it. Where there are several reasons, it is what the caller asked for.
std::vector<ClosedBy> closed_nodes(const Cluster& before, const Cluster& after, const Options& options) {
    std::vector<ClosedBy> closed(before.node_slots(), ClosedBy::none);
    for (const auto node : before.nodes()) {
        auto& by = closed[index(node)];
        if (before.inventory().nodes.is_cordoned(node))
            by = ClosedBy::cordoned;
        else if (before.occupants(node) == 0)
            by = options.open_price ? ClosedBy::none : ClosedBy::empty;
        else if (after.occupants(node) == 0)
            by = ClosedBy::emptied;
    }
    if (options.clear)
        for (const auto node : *options.clear) closed[index(node)] = ClosedBy::to_clear;
    for (const auto node : options.exempt) closed[index(node)] = ClosedBy::exempt;
    return closed;
}

// The rule of the options in the state that the plan leaves.
AnyPlacementRule rule_after(const Plan& plan, const Cluster& after, const Options& options) {
    auto rule = options.rule;
    for (const auto& move : plan.moves) rule.move(after, move.task, move.from, move.to);
    return rule;
}

// The plan's outcome, prepared for questions about its nodes.
class Explainer {
  public:
    Explainer(const Cluster& cluster, const Plan& plan, const Options& options)
        : cluster_(cluster), options_(options), after_(apply(cluster, plan)),
          scope_(make_scope(cluster, options)), closed_by_(closed_nodes(cluster, after_, options)),
          rule_(rule_after(plan, after_, options)), goal_reached_(plan.goal_reached == true) {}

    [[nodiscard]] bool leaves_occupied(NodeId node) const { return after_.occupants(node) > 0; }
    [[nodiscard]] Explanation about(NodeId node);

  private:
    [[nodiscard]] Blocker look_for_place(TaskId task) const;
    [[nodiscard]] Obstacle beside_room(TaskId task, NodeId node, bool enough_gpus) const;
    [[nodiscard]] LeastChange change_on(TaskId task, NodeId node) const;
    [[nodiscard]] LeastChange least_change(TaskId task) const;
    /// @param opened_weight is set to what the empty nodes are worth that the tasks would open
    [[nodiscard]] std::vector<Blocker> place_together(NodeId node, std::int64_t& opened_weight);
    [[nodiscard]] std::string in_words(const LeastChange& change, TaskId task) const;
    [[nodiscard]] std::string in_the_way(const Blocker& blocker) const;

    [[nodiscard]] bool is_worth_opening(const PriceOfNode& node, std::int64_t opened_weight) const {
        const auto opening = opening_milli(opened_weight, *options_.open_price);
        const auto value = value_milli(node.weight, node.cost, options_.price);
        return options_.clear ? value >= opening : value > opening;
    }

    const Cluster& cluster_;
    const Options& options_;
    Cluster after_;
    Scope scope_;
    std::vector<ClosedBy> closed_by_;
    AnyPlacementRule rule_;  // in the state of `after_`
    bool goal_reached_;
};

// Over all nodes that may receive the task: how often each obstacle comes first.
Blocker Explainer::look_for_place(TaskId task) const {
    std::array<std::size_t, enum_names(Obstacle{}).size()> seen{};
    Blocker blocker{.task = task};
    for (const auto node : after_.nodes()) {
        if (node == after_.node_of(task) || closed_by_[index(node)] != ClosedBy::none) continue;
        auto obstacle = find_obstacle(after_, task, node);
        if (obstacle == Obstacle::not_eligible) obstacle = find_eligibility_obstacle(after_, task, node);
        ++blocker.nodes_looked_at;
        if (obstacle == Obstacle::none && !rule_.allows(after_, task, node))
            ++blocker.nodes_refused;
        else
            ++seen[static_cast<std::size_t>(obstacle)];
    }
    // Nodes of another kind say nothing new, so the obstacle on nodes of the right kind is named where there is any.
    const auto unsuitable = [](std::size_t o) {
        const auto obstacle = static_cast<Obstacle>(o);
        return obstacle == Obstacle::gpu_model || obstacle == Obstacle::node_selector ||
               obstacle == Obstacle::node_affinity || obstacle == Obstacle::taint ||
               obstacle == Obstacle::cordoned;
    };
    if (seen[0] > 0) {  // it fits somewhere
        blocker.nodes_refused = 0;
        return blocker;
    }
    for (const bool kind : {false, true})
        for (std::size_t o = 1; o < seen.size(); ++o)
            if (unsuitable(o) == kind && seen[o] > blocker.nodes_with_obstacle &&
                (!kind || blocker.obstacle == Obstacle::none ||
                 unsuitable(static_cast<std::size_t>(blocker.obstacle)))) {
                blocker.obstacle = static_cast<Obstacle>(o);
                blocker.nodes_with_obstacle = seen[o];
            }
    blocker.change = least_change(task);
    return blocker;
}

// What is in the way of the task on an eligible node beside cores, memory and the number of GPUs.
Obstacle Explainer::beside_room(TaskId task, NodeId node, bool enough_gpus) const {
    const auto& inv = cluster_.inventory();
    const auto i = index(task);
    if (inv.tasks.is(TaskTrait::extras, task)) {
        const auto& extras = inv.extras[inv.tasks.extras[i]];
        for (const auto& [resource, amount] : extras.resources)
            if (amount > after_.resource_free(node, resource)) return Obstacle::resource;
        if (extras.device_count > 0 && free_devices_for(after_, task, node) == 0) return Obstacle::device;
    }
    // Which GPUs would come on top of too few is not known, nor what memory they have and where they are.
    if (const auto gpus = inv.tasks.gpu_count[i]; gpus > 0 && enough_gpus) {
        const auto usable = candidate_gpus(after_, task, node);
        if (gpu_count(usable) < gpus) return after_.is_fraction(task) ? Obstacle::gpu : Obstacle::gpu_memory;
        const auto local = guaranteed_localities(after_, task, node);
        if (local.unknown ||
            (!local.masks.empty() && std::none_of(local.masks.begin(), local.masks.end(), [&](GpuMask mask) {
                return gpu_count(static_cast<GpuMask>(mask & usable)) >= gpus;
            })))
            return Obstacle::hardware;
    }
    return find_group_obstacle(after_, task, node);
}

// What the task lacks on an eligible node, and what else is in its way there.
LeastChange Explainer::change_on(TaskId task, NodeId node) const {
    const auto& t = cluster_.inventory().tasks;
    const auto i = index(task);
    const auto lent = after_.lent_to(task);
    LeastChange here{.node = node};
    here.cpu_milli = std::max<std::int64_t>(0, t.cpu_milli[i] - after_.cpu_free_milli(node, lent));
    here.memory_mib = std::max<std::int64_t>(0, t.memory_mib[i] - after_.memory_free_mib(node));
    if (const auto gpus = t.gpu_count[i]; gpus > 0) {
        std::int64_t whole = 0, most = 0;
        for_each_gpu(after_.healthy_gpus(node), [&](int g) {
            const auto free = std::int64_t{after_.gpu_free_milli(node, g, lent)};
            whole += free == whole_gpu_milli;
            most = std::max(most, free);
        });
        here.gpu_milli = after_.is_fraction(task) ? std::max<std::int64_t>(0, t.gpu_share_milli[i] - most)
                                                  : whole_gpu_milli * std::max<std::int64_t>(0, gpus - whole);
    }
    if (here.gpu_milli == 0 && here.cpu_milli == 0 && here.memory_mib == 0)
        here.obstacle = find_obstacle(after_, task, node);
    else
        here.obstacle = beside_room(task, node, here.gpu_milli == 0);
    return here;
}

LeastChange Explainer::least_change(TaskId task) const {
    LeastChange least;
    std::tuple<bool, std::int64_t, std::int64_t> lowest{};
    for (const auto node : after_.nodes()) {
        if (node == after_.node_of(task) || find_eligibility_obstacle(after_, task, node) != Obstacle::none ||
            !rule_.allows(after_, task, node))
            continue;
        const auto closed = closed_by_[index(node)];
        if (closed != ClosedBy::none) {
            const auto obstacle = find_obstacle(after_, task, node);
            const bool fits =
                obstacle == Obstacle::none || (obstacle == Obstacle::cordoned &&
                                               find_resource_obstacle(after_, task, node) == Obstacle::none &&
                                               find_group_obstacle(after_, task, node) == Obstacle::none);
            if (fits && least.closed_node == none<NodeId>) least.closed_node = node, least.closed_by = closed;
            continue;
        }
        auto here = change_on(task, node);
        const std::tuple key{here.obstacle != Obstacle::none, here.gpu_milli + here.cpu_milli / 16,
                             here.memory_mib};
        if (least.node == none<NodeId> || key < lowest) {
            lowest = key;
            here.closed_node = least.closed_node, here.closed_by = least.closed_by;
            least = here;
        }
    }
    return least;
}

// The tasks that find no place once those before them have taken theirs.
std::vector<Blocker> Explainer::place_together(NodeId node, std::int64_t& opened_weight) {
    const auto& t = cluster_.inventory().tasks;
    std::vector<TaskId> own;
    for (const auto task : after_.tasks_on(node))
        if (!t.daemon[index(task)] && cluster_.node_of(task) == node) own.push_back(task);
    std::sort(own.begin(), own.end(), [&](TaskId a, TaskId b) {
        const auto key = [&](TaskId x) {
            return std::tuple(-cluster_.gpu_milli(x), -t.cpu_milli[index(x)], -t.memory_mib[index(x)], x);
        };
        return key(a) < key(b);
    });
    const auto start = after_.checkpoint();
    const auto first_rule = rule_;
    std::vector<Blocker> left;
    for (const auto task : own) {
        NodeId tightest = none<NodeId>;
        std::tuple<bool, int, std::int64_t> least{};
        for (const auto to : after_.nodes()) {
            if (to == node || closed_by_[index(to)] != ClosedBy::none ||
                find_obstacle(after_, task, to) != Obstacle::none || !rule_.allows(after_, task, to))
                continue;
            const std::tuple free{after_.occupants(to) == 0, gpu_count(after_.idle_gpus(to)),
                                  after_.cpu_free_milli(to)};
            if (tightest == none<NodeId> || free < least) tightest = to, least = free;
        }
        if (tightest == none<NodeId>) {
            left.push_back(look_for_place(task));
            continue;
        }
        if (after_.occupants(tightest) == 0) opened_weight += weight_of(cluster_, tightest, options_);
        after_.assign(task, tightest,
                      allocation::pick_gpus(allocation::TightestGpu{}, after_, task, tightest));
        rule_.move(after_, task, node, tightest);
    }
    after_.rollback(start);
    rule_ = first_rule;
    return left;
}

std::string Explainer::in_the_way(const Blocker& blocker) const {
    std::string text;
    if (blocker.nodes_refused > 0)
        text = "rule " + gpusched::quoted(rule_.name()) + " on " + std::to_string(blocker.nodes_refused);
    if (blocker.nodes_with_obstacle > 0 || text.empty())
        text += (text.empty() ? "" : ", ") + std::string(enum_name(blocker.obstacle)) + " on " +
                std::to_string(blocker.nodes_with_obstacle);
    return text;
}

std::string Explainer::in_words(const LeastChange& change, TaskId task) const {
    const auto number = [](std::int64_t milli) {
        auto text = std::to_string(milli / 1000);
        if (milli % 1000 == 0) return text;
        auto rest = std::to_string(1000 + milli % 1000).substr(1);
        while (rest.back() == '0') rest.pop_back();
        return text + "." + rest;
    };
    std::string text;
    if (change.node != none<NodeId>) {
        std::vector<std::string> lacks;
        if (change.gpu_milli > 0)
            lacks.push_back(cluster_.is_fraction(task)
                                ? number(change.gpu_milli) + " of a GPU"
                                : counted(change.gpu_milli / whole_gpu_milli, "idle GPU"));
        if (change.cpu_milli > 0)
            lacks.push_back(number(change.cpu_milli) + (change.cpu_milli == 1000 ? " core" : " cores"));
        if (change.memory_mib > 0) lacks.push_back(std::to_string(change.memory_mib) + " MiB of memory");
        text += "; nearest is node " + gpusched::quoted(cluster_.name(change.node));
        for (std::size_t l = 0; l < lacks.size(); ++l)
            text += (l == 0 ? ", which lacks " : l + 1 == lacks.size() ? " and " : ", ") + lacks[l];
        if (change.obstacle != Obstacle::none)
            text += (lacks.empty() ? ", where only " : ", and where ") +
                    std::string(enum_name(change.obstacle)) +
                    (lacks.empty() ? " is in the way" : " is in the way as well");
    }
    if (change.closed_node != none<NodeId>)
        text += "; it would fit on node " + gpusched::quoted(cluster_.name(change.closed_node)) +
                ", which is " + detail::in_words(change.closed_by);
    if (!text.empty()) return text;
    const auto all = after_.nodes();
    const bool suits = std::any_of(all.begin(), all.end(), [&](NodeId node) {
        return node != after_.node_of(task) &&
               find_eligibility_obstacle(after_, task, node) == Obstacle::none;
    });
    return suits ? "; rule " + gpusched::quoted(rule_.name()) +
                       " refuses it on every node of a kind that it accepts"
                 : "; no other node is of a kind that it accepts";
}

Explanation Explainer::about(NodeId node) {
    Explanation result{.node = node,
                       .fate = NodeFate::empty,
                       .blockers = {},
                       .received = {},
                       .text = "node " + gpusched::quoted(cluster_.name(node))};
    if (cluster_.occupants(node) == 0) {
        result.text += " holds no task but daemons to begin with";
        return result;
    }
    if (after_.occupants(node) == 0) {
        result.fate = NodeFate::vacated;
        result.text += " is vacated by the plan";
        return result;
    }
    result.fate = NodeFate::not_worthwhile;
    for (const auto task : after_.tasks_on(node)) {
        if (cluster_.inventory().tasks.daemon[index(task)]) continue;
        if (cluster_.node_of(task) != node) {
            result.received.push_back(task);
            continue;
        }
        if (!scope_.movable[index(task)]) {
            result.fate = NodeFate::has_fixed;
            result.blockers.push_back({.task = task, .fixed_by = fixed_by(cluster_, task, options_)});
            continue;
        }
        auto blocker = look_for_place(task);
        if (blocker.nodes_looked_at > 0 && blocker.obstacle == Obstacle::none && blocker.nodes_refused == 0)
            continue;
        if (result.fate == NodeFate::not_worthwhile) result.fate = NodeFate::has_stuck;
        result.blockers.push_back(std::move(blocker));
    }
    result.text += " stays occupied";
    if (result.fate == NodeFate::not_worthwhile && !result.received.empty()) {
        result.fate = NodeFate::receives;
        const auto moved =
            std::ranges::count_if(result.received, [&](TaskId task) { return cluster_.is_placed(task); });
        const auto placed = std::ssize(result.received) - moved;
        result.text += ": the plan";
        if (moved > 0) result.text += " moves " + counted(moved, "task") + " onto it";
        if (placed > 0)
            result.text += (moved > 0 ? " and places " : " places ") + counted(placed, "task") + " on it";
    }
    const auto dear = price_of_node(cluster_, scope_, node, options_);
    std::int64_t opened_weight = 0;
    if (result.fate == NodeFate::not_worthwhile && !is_worth(dear.weight, dear.cost, options_.price)) {
        result.fate = NodeFate::too_dear;
        const bool gpus = options_.objective == Objective::gpus;
        result.text += ": at the price of " + std::to_string(options_.price) + " its moves, of cost " +
                       std::to_string(dear.cost) + ", take more than the " + std::to_string(dear.weight) +
                       (gpus ? " GPUs" : " node") + " that it is worth";
    } else if (result.fate == NodeFate::not_worthwhile) {
        result.blockers = place_together(node, opened_weight);
        if (result.blockers.empty() && opened_weight > 0 && !is_worth_opening(dear, opened_weight)) {
            result.fate = NodeFate::too_dear;
            result.text += ": at the open price of " + std::to_string(*options_.open_price) +
                           " the empty nodes that its tasks would open, worth " +
                           std::to_string(opened_weight) + ", cost no less than the " +
                           std::to_string(dear.weight) +
                           (options_.objective == Objective::gpus ? " GPUs" : " node") + " that it is worth";
        } else if (result.blockers.empty() && goal_reached_)
            result.text += ": all of its tasks fit elsewhere, but the plan reaches its goal without it";
        else if (result.blockers.empty())
            result.text +=
                std::string(": all of its tasks fit elsewhere, but their moves were not within the ") +
                (options_.max_moves || options_.max_move_cost ? "migration budget or the " : "") +
                "limits of the search";
        else {
            result.fate = NodeFate::crowded;
            result.text += ": each of its tasks fits elsewhere alone, but not all of them together";
        }
    }
    const char* separator = ": ";
    for (const auto& blocker : result.blockers) {
        result.text += separator + std::string("task ") + gpusched::quoted(cluster_.name(blocker.task));
        separator = "; ";
        if (blocker.fixed_by != FixedBy::none) {
            result.text += " must stay (" + detail::in_words(blocker.fixed_by) + ")";
            continue;
        }
        if (blocker.nodes_looked_at == 0)
            result.text += " has no other occupied node to go to";
        else
            result.text += std::string(result.fate == NodeFate::crowded ? " then fits nowhere ("
                                                                        : " fits nowhere else (") +
                           in_the_way(blocker) + " of " +
                           counted(static_cast<std::int64_t>(blocker.nodes_looked_at), "node") + ")";
        result.text += in_words(blocker.change, blocker.task);
    }
    return result;
}

}  // namespace detail

GPUSCHED_EXPORT Explanation explain(const Cluster& cluster, const Plan& plan, NodeId node,
                                    const Options& options) {
    validate(options, cluster);
    if (!cluster.contains(node))
        throw InvalidInput("node: there is no node " + std::to_string(index(node)) + "; expected less than " +
                           std::to_string(cluster.node_slots()));
    return detail::Explainer(cluster, plan, options).about(node);
}

GPUSCHED_EXPORT std::vector<Explanation> explain_clear(const Cluster& cluster, const Plan& plan,
                                                       const Options& options) {
    validate(options, cluster);
    if (!options.clear) throw InvalidInput("clear: absent; expected the nodes that were to be cleared");
    auto nodes = *options.clear;
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    detail::Explainer explainer(cluster, plan, options);
    std::vector<Explanation> result;
    for (const auto node : nodes)
        if (explainer.leaves_occupied(node)) result.push_back(explainer.about(node));
    return result;
}

}  // namespace gpusched::consolidation
