// SPDX-License-Identifier: Apache-2.0
// Explanations of nodes and moves.
#include "consolidation/checks.hpp"
#include "consolidation/explain_parts.hpp"
#include "model/node_match.hpp"

#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/config.hpp>
#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/policies.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>

namespace gpusched::consolidation {

namespace detail {

std::string closed_text(const Inventory& inventory, ClosedBy by, NodeId node) {
    switch (by) {
    case ClosedBy::cordoned:
        return std::string(words_of(inventory).closed) +
               gpusched::detail::closed_reason(inventory, node, ": ");
    case ClosedBy::not_ready:
        return "not ready" + gpusched::detail::closed_reason(inventory, node, ": ");
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

bool has_no_controller(const Inventory& inventory, TaskId task) {
    const auto& kinds = inventory.tasks.owner_kind;
    const auto i = index(task);
    return i < kinds.size() && kinds[i] != TaskTable::unknown_kind && inventory.owner_kinds[kinds[i]].empty();
}

std::string bound_by(const Cluster& cluster, TaskId task) {
    const auto& inv = cluster.inventory();
    std::vector<std::pair<std::uint32_t, std::int64_t>> volumes;
    for (const auto& [resource, amount] : inv.extras[inv.tasks.extras[index(task)]].resources)
        if (gpusched::detail::is_volume(inv.resource_names[resource])) volumes.emplace_back(resource, amount);
    const auto names_node = [](const NodeMatch& match) { return match.key == hostname; };
    const auto& affinity = inv.node_affinity(task);
    const bool names_nodes =
        inv.node_selector(task).contains(hostname) ||
        std::any_of(affinity.begin(), affinity.end(), [&](const NodeTerm& term) {
            return !term.match_fields.empty() ||
                   std::any_of(term.match_expressions.begin(), term.match_expressions.end(), names_node);
        });
    if (volumes.empty() && !names_nodes) return {};
    const auto columns = inv.resource_names.size();
    const auto nodes = cluster.nodes();
    const auto passes = [&](NodeId node) {
        return inv.eligible(task, node) &&
               std::all_of(volumes.begin(), volumes.end(), [&](const auto& volume) {
                   return inv.node_resources[index(node) * columns + volume.first] >= volume.second;
               });
    };
    const auto own = cluster.node_of(task);
    if (own == none<NodeId> || !passes(own) ||
        std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) { return node != own && passes(node); }))
        return {};
    for (const auto& [resource, amount] : volumes) {
        const auto reaches = [&](NodeId node) {
            return inv.node_resources[index(node) * columns + resource] >= amount;
        };
        if (std::count_if(nodes.begin(), nodes.end(), reaches) == 1)
            return concat("no other node reaches ", inv.resource_names[resource]);
    }
    return "a local volume or the name of its node binds it";
}

FixedBy fixed_by(const Cluster& cluster, TaskId task, const Options& options, bool movable) {
    if (movable) return bound_by(cluster, task).empty() ? FixedBy::none : FixedBy::bound_to_node;
    const auto& t = cluster.inventory().tasks;
    const auto i = index(task);
    if (t.daemon[i]) return FixedBy::daemon;
    if (t.locked[i]) return FixedBy::locked;
    if (t.standby[i]) return FixedBy::standby;
    if (cluster.inventory().task_affinities[t.affinities[i]].cpu_local) return FixedBy::cpu_local;
    if (t.how(task) == Mobility::none)
        return has_no_controller(cluster.inventory(), task) ? FixedBy::no_controller : FixedBy::never_moves;
    const auto node = cluster.node_of(task);
    if (std::find(options.exempt.begin(), options.exempt.end(), node) != options.exempt.end())
        return FixedBy::exempt_node;
    const auto job = t.job[i];
    if (options.limits.max_disrupted == 0 ||
        (job != none<JobId> && cluster.inventory().job_max_disrupted[index(job)] == 0))
        return FixedBy::no_disruption;
    if (no_budget_left(cluster.inventory(), task)) return FixedBy::budget;
    return FixedBy::core_member;
}

// Names the budgets that keep the task.
static std::string name_budgets(const Cluster& cluster, TaskId task) {
    const auto& inv = cluster.inventory();
    std::vector<std::string> names;
    for (const auto budget : inv.budgets_of(task))
        if (inv.budgets[budget].allows() == 0) names.push_back(gpusched::quoted(inv.budget_names[budget]));
    if (names.empty()) return "its disruption budget allows none";
    std::string list;
    for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
    return names.size() == 1 ? "its disruption budget " + list + " allows none"
                             : "its disruption budgets " + list + " allow none";
}

// Says what forbids moves to a task that has a controller, as far as the snapshot tells.
static std::string name_protection(const Inventory& inv, TaskId task) {
    const auto i = index(task);
    if (gpusched::detail::is_slurm(inv) || i >= inv.tasks.owner_kind.size() ||
        inv.tasks.owner_kind[i] == TaskTable::unknown_kind)
        return std::string(words_of(inv).fixed);
    const std::string kind(inv.owner_kinds[inv.tasks.owner_kind[i]]);
    for (const char* const known :
         {"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "Job"})
        if (kind == known) return "protected: by an annotation such as safe-to-evict, or by its scheduler";
    return concat("protected: its owner is of kind ", kind,
                  ", which is not known to recreate it, or an annotation or its scheduler protects it");
}

std::string fixed_text(const Cluster& cluster, TaskId task, FixedBy by) {
    const auto& inv = cluster.inventory();
    switch (by) {
    case FixedBy::locked:
        if (inv.terminating.contains(task)) return "being deleted";
        if (const auto node = cluster.node_of(task);
            node != none<NodeId> &&
            gpusched::detail::is_not_ready(inv.node_classes[inv.nodes.node_class[index(node)]].taints))
            return "bound to a node that is not ready";
        return "locked";
    case FixedBy::standby:
        return "it lends its resources";
    case FixedBy::cpu_local:
        return "it is bound to its cores";
    case FixedBy::no_controller:
        return "no controller would recreate it";
    case FixedBy::never_moves:
        return name_protection(inv, task);
    case FixedBy::bound_to_node:
        return bound_by(cluster, task);
    case FixedBy::exempt_node:
        return "its node is exempt";
    case FixedBy::no_disruption:
        return "its job allows no disruption";
    case FixedBy::budget:
        return name_budgets(cluster, task);
    case FixedBy::core_member:
        return "its job needs this member";
    default:
        return std::string(enum_name(by));
    }
}

std::int64_t weight_of(const Cluster& cluster, NodeId node, const Options& options) {
    return options.objective == Objective::gpus ? gpu_count(cluster.healthy_gpus(node)) : 1;
}

static std::string counted(std::int64_t number, const char* what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

// A node of `clear` or `exempt` is closed by these options, whatever else closes it.
std::vector<ClosedBy> closed_nodes(const Cluster& before, const Cluster& after, const Options& options) {
    std::vector<ClosedBy> closed(before.node_slots(), ClosedBy::none);
    for (const auto node : before.nodes()) {
        auto& by = closed[index(node)];
        const auto& inv = before.inventory();
        if (inv.nodes.is_cordoned(node))
            by = gpusched::detail::is_not_ready(inv.node_classes[inv.nodes.node_class[index(node)]].taints)
                     ? ClosedBy::not_ready
                     : ClosedBy::cordoned;
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

AnyPlacementRule rule_after(const Plan& plan, const Cluster& after, const Options& options) {
    auto rule = options.rule;
    for (const auto& move : plan.moves) rule.move(after, move.task, move.from, move.to);
    return rule;
}

/// The outcome of a plan, prepared for questions about its nodes.
class Explainer {
  public:
    Explainer(const Cluster& cluster, const Plan& plan, const Options& options)
        : cluster_(cluster), options_(options), after_(apply(cluster, plan)),
          scope_(make_scope(cluster, options)), closed_by_(closed_nodes(cluster, after_, options)),
          rule_(rule_after(plan, after_, options)), goal_reached_(plan.goal_reached == true) {}

    [[nodiscard]] bool leaves_occupied(NodeId node) const { return after_.occupants(node) > 0; }
    [[nodiscard]] Explanation explain_node(NodeId node);

  private:
    [[nodiscard]] Blocker find_blocker(TaskId task) const;
    [[nodiscard]] Obstacle other_obstacle(TaskId task, NodeId node, bool enough_gpus) const;
    [[nodiscard]] LeastChange change_on(TaskId task, NodeId node) const;
    [[nodiscard]] LeastChange least_change(TaskId task) const;
    /// @param opened_weight is increased by the weight of the empty nodes that the tasks would open
    [[nodiscard]] std::vector<Blocker> place_together(NodeId node, std::int64_t& opened_weight);
    [[nodiscard]] std::string change_text(const LeastChange& change, TaskId task) const;
    [[nodiscard]] std::string_view words(Obstacle obstacle) const {
        return gpusched::detail::obstacle_text(cluster_.inventory(), obstacle);
    }
    [[nodiscard]] std::string obstacles_of(const Blocker& blocker) const;

    [[nodiscard]] bool is_worth_opening(std::int64_t weight, std::int64_t cost,
                                        std::int64_t opened_weight) const {
        const auto opening = opening_milli(opened_weight, *options_.open_price);
        const auto value = value_milli(weight, cost, options_.price);
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

// Finds the most frequent first obstacle over all nodes that may receive the task.
Blocker Explainer::find_blocker(TaskId task) const {
    std::array<std::size_t, enumerators<Obstacle>().size()> seen{};
    Blocker blocker{.task = task};
    for (const auto node : after_.nodes()) {
        if (node == after_.node_of(task) || closed_by_[index(node)] != ClosedBy::none) continue;
        auto obstacle = find_obstacle(after_, task, node);
        if (obstacle == Obstacle::not_eligible) obstacle = find_eligibility_obstacle(after_, task, node);
        ++blocker.nodes_looked_at;
        if (obstacle != Obstacle::none) {
            ++seen[static_cast<std::size_t>(obstacle)];
        } else if (rule_.allows(after_, task, node)) {  // it fits
            blocker.nodes_refused = 0;
            return blocker;
        } else {
            ++blocker.nodes_refused;
        }
    }
    // Obstacles on nodes that the task accepts come first: those on other nodes say nothing new.
    const auto unsuitable = [](std::size_t o) {
        const auto obstacle = static_cast<Obstacle>(o);
        return obstacle == Obstacle::gpu_model || obstacle == Obstacle::node_selector ||
               obstacle == Obstacle::node_affinity || obstacle == Obstacle::taint ||
               obstacle == Obstacle::cordoned || obstacle == Obstacle::not_ready;
    };
    const auto choose = [&](bool among_unsuitable) {
        for (std::size_t o = 1; o < seen.size(); ++o)
            if (unsuitable(o) == among_unsuitable && seen[o] > blocker.nodes_with_obstacle) {
                blocker.obstacle = static_cast<Obstacle>(o);
                blocker.nodes_with_obstacle = seen[o];
            }
    };
    choose(false);
    if (blocker.obstacle == Obstacle::none) choose(true);
    blocker.change = least_change(task);
    return blocker;
}

// Finds an obstacle on an eligible node other than cores, memory and the number of GPUs.
Obstacle Explainer::other_obstacle(TaskId task, NodeId node, bool enough_gpus) const {
    const auto& inv = cluster_.inventory();
    const auto i = index(task);
    if (inv.tasks.is(TaskTrait::extras, task)) {
        const auto& extras = inv.extras[inv.tasks.extras[i]];
        for (const auto& [resource, amount] : extras.resources)
            if (amount > after_.resource_free(node, resource)) return Obstacle::resource;
        if (extras.device_count > 0 && free_devices_for(after_, task, node) == 0) return Obstacle::device;
    }
    // If GPUs are lacking, the memory and position of further GPUs are unknown.
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

// Computes the capacity that the task lacks on an eligible node, and another obstacle there.
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
        here.obstacle = other_obstacle(task, node, here.gpu_milli == 0);
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
            const bool fits = obstacle == Obstacle::none ||
                              ((obstacle == Obstacle::cordoned || obstacle == Obstacle::not_ready) &&
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

// Places the node's own tasks elsewhere in turn, and returns those without a place.
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
            left.push_back(find_blocker(task));
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

std::string Explainer::obstacles_of(const Blocker& blocker) const {
    std::string text;
    if (blocker.nodes_refused > 0)
        text = "rule " + gpusched::quoted(rule_.name()) + " on " + std::to_string(blocker.nodes_refused);
    if (blocker.nodes_with_obstacle > 0 || text.empty())
        text += (text.empty() ? "" : ", ") + std::string(words(blocker.obstacle)) + " on " +
                std::to_string(blocker.nodes_with_obstacle);
    return text;
}

std::string Explainer::change_text(const LeastChange& change, TaskId task) const {
    std::string text;
    if (change.node != none<NodeId>) {
        std::vector<std::string> lacks;
        if (change.gpu_milli > 0)
            lacks.push_back(cluster_.is_fraction(task)
                                ? milli_text(change.gpu_milli) + " of a GPU"
                                : counted(change.gpu_milli / whole_gpu_milli, "idle GPU"));
        if (change.cpu_milli > 0)
            lacks.push_back(milli_text(change.cpu_milli) + (change.cpu_milli == 1000 ? " core" : " cores"));
        if (change.memory_mib > 0) lacks.push_back(mib_text(change.memory_mib) + " of memory");
        text += "; nearest is node " + gpusched::quoted(cluster_.name(change.node));
        for (std::size_t l = 0; l < lacks.size(); ++l)
            text += (l == 0 ? ", which lacks " : l + 1 == lacks.size() ? " and " : ", ") + lacks[l];
        if (change.obstacle != Obstacle::none)
            text += std::string(lacks.empty() ? ", prevented only by " : ", and is prevented by ") +
                    std::string(words(change.obstacle));
    }
    if (change.closed_node != none<NodeId>)
        text += "; it would fit on node " + gpusched::quoted(cluster_.name(change.closed_node)) +
                ", which is " + closed_text(cluster_.inventory(), change.closed_by, change.closed_node);
    if (!text.empty()) return text;
    const auto all = after_.nodes();
    const bool suits = std::any_of(all.begin(), all.end(), [&](NodeId node) {
        return node != after_.node_of(task) &&
               find_eligibility_obstacle(after_, task, node) == Obstacle::none;
    });
    return suits ? "; rule " + gpusched::quoted(rule_.name()) + " rejects every other node that it accepts"
                 : "; it accepts no other node";
}

Explanation Explainer::explain_node(NodeId node) {
    Explanation result{.node = node, .text = "node " + gpusched::quoted(cluster_.name(node))};
    if (cluster_.occupants(node) == 0) {
        result.text += " held no task except daemons before the plan";
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
        if (const auto by = fixed_by(cluster_, task, options_, scope_.movable[index(task)] != 0);
            by != FixedBy::none) {
            result.fate = NodeFate::has_fixed;
            result.blockers.push_back({.task = task, .fixed_by = by});
            continue;
        }
        auto blocker = find_blocker(task);
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
    const auto weight = weight_of(cluster_, node, options_);
    const auto cost = cost_of_leaving(cluster_, scope_, node);
    const std::string weight_text = counted(weight, options_.objective == Objective::gpus ? "GPU" : "node");
    std::int64_t opened_weight = 0;
    if (result.fate == NodeFate::not_worthwhile && !is_worth(weight, cost, options_.price)) {
        result.fate = NodeFate::too_costly;
        result.text += ": at the price of " + std::to_string(options_.price) + " its moves, of cost " +
                       std::to_string(cost) + ", cost more than its weight of " + weight_text;
    } else if (result.fate == NodeFate::not_worthwhile) {
        result.blockers = place_together(node, opened_weight);
        if (!result.blockers.empty()) {
            result.fate = NodeFate::crowded;
            result.text += ": each of its tasks fits elsewhere alone, but not all of them together";
        } else if (opened_weight > 0 && !is_worth_opening(weight, cost, opened_weight)) {
            result.fate = NodeFate::too_costly;
            result.text += ": at the open price of " + std::to_string(*options_.open_price) +
                           " the cost of opening empty nodes of weight " + std::to_string(opened_weight) +
                           " for its tasks is at least its weight of " + weight_text;
        } else if (goal_reached_) {
            result.text += ": all of its tasks fit elsewhere, but the plan reaches its goal without it";
        } else {
            result.text +=
                std::string(": all of its tasks fit elsewhere, but their moves were not within the ") +
                (options_.max_moves || options_.max_move_cost ? "migration budget or the " : "") +
                "limits of the search";
        }
    }
    const char* separator = ": ";
    for (const auto& blocker : result.blockers) {
        result.text += separator + std::string("task ") + gpusched::quoted(cluster_.name(blocker.task));
        separator = "; ";
        if (blocker.fixed_by != FixedBy::none) {
            result.text += " must stay (" + fixed_text(cluster_, blocker.task, blocker.fixed_by) + ")";
            continue;
        }
        if (blocker.nodes_looked_at == 0)
            result.text += " has no other node to go to";
        else
            result.text += std::string(result.fate == NodeFate::crowded ? " then fits nowhere ("
                                                                        : " fits nowhere else (") +
                           obstacles_of(blocker) + " of " +
                           counted(static_cast<std::int64_t>(blocker.nodes_looked_at), "node") + ")";
        result.text += change_text(blocker.change, blocker.task);
    }
    return result;
}

}  // namespace detail

std::vector<Explanation> detail::explain_each(const Cluster& cluster, const std::vector<NodeId>& nodes,
                                              const Options& options) {
    Explainer explainer(cluster, {}, options);
    std::vector<Explanation> result;
    for (const auto node : nodes) result.push_back(explainer.explain_node(node));
    return result;
}

GPUSCHED_EXPORT Explanation explain(const Cluster& cluster, const Plan& plan, NodeId node,
                                    const Options& options) {
    validate(options, cluster);
    detail::require_node(cluster, node);
    return detail::Explainer(cluster, plan, options).explain_node(node);
}

GPUSCHED_EXPORT std::vector<Explanation> explain_clear(const Cluster& cluster, const Plan& plan,
                                                       const Options& options) {
    validate(options, cluster);
    if (!options.clear) throw InvalidInput("clear: absent; expected the nodes to clear");
    auto nodes = *options.clear;
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    detail::Explainer explainer(cluster, plan, options);
    std::vector<Explanation> result;
    for (const auto node : nodes)
        if (explainer.leaves_occupied(node)) result.push_back(explainer.explain_node(node));
    return result;
}

namespace detail {

/// Chooses the fewest movable tasks, all easier to place than the task, that could leave the node for it. Of
/// several such sets it prefers tasks that have already moved, then small ones. Each set is checked against
/// all constraints.
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

    /// Up to this number of sets of equal size are tried. Beyond it, fewest() returns a set from which no
    /// task can be left out.
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

std::string fate_text(const Cluster& cluster, const MoveExplanation& e, const Options& options,
                      bool after_plan) {
    const auto to = "node " + gpusched::quoted(cluster.name(e.to_node));
    switch (e.fate) {
    case MoveFate::not_placed:
        if (e.from_node != none<NodeId>)
            return "does not run before the plan, which places it on node " +
                   gpusched::quoted(cluster.name(e.from_node));
        return cluster.is_placed(e.task) ? "is evicted by the plan" : "does not run";
    case MoveFate::is_there:
        return "is on " + to + (after_plan ? " after the plan" : " already");
    case MoveFate::task_stays:
        return "must stay (" + fixed_text(cluster, e.task, e.fixed_by) + ")";
    case MoveFate::possible:
        break;
    case MoveFate::node_closed:
        return "cannot move to " + to + ": the node receives nothing (" +
               closed_text(cluster.inventory(), e.closed_by, e.to_node) + ")";
    case MoveFate::obstacle: {
        const bool is_volume =
            e.obstacle == Obstacle::resource &&
            gpusched::detail::find_permanent_obstacle(cluster, e.task, e.to_node) == Obstacle::resource;
        auto text =
            concat("cannot move to ", to, " (",
                   is_volume ? "volume out of reach"
                             : gpusched::detail::obstacle_text(cluster.inventory(), e.obstacle),
                   e.closed_by == ClosedBy::none
                       ? std::string()
                       : "; the node is also " + closed_text(cluster.inventory(), e.closed_by, e.to_node),
                   ")");
        for (std::size_t v = 0; v < e.victims.size(); ++v)
            text += (v == 0 ? ", unless these leave it: task " : ", task ") +
                    gpusched::quoted(cluster.name(e.victims[v]));
        return text;
    }
    case MoveFate::refused:
        return "cannot move to " + to + ": rule " + gpusched::quoted(options.rule.name()) + " rejects it";
    case MoveFate::no_turn:
        return "fits into no wave on its way to " + to;
    }
    return "could move to " + to;
}

std::string move_text(const Cluster& cluster, const MoveExplanation& e, const Options& options,
                      bool after_plan) {
    const auto text =
        "task " + gpusched::quoted(cluster.name(e.task)) + " " + fate_text(cluster, e, options, after_plan);
    if (e.fate == MoveFate::not_placed || e.fate == MoveFate::is_there || e.fate == MoveFate::task_stays)
        return text;
    if (e.weight < 0)
        return text + "; the move alone fills node " + gpusched::quoted(cluster.name(e.to_node)) +
               ", which is empty otherwise";
    if (e.weight == 0) {
        const bool may_fill =
            options.open_price || e.closed_by == ClosedBy::empty || e.closed_by == ClosedBy::emptied;
        return text + "; the move alone frees no " + (may_fill ? "more than it fills" : "node");
    }
    return text + "; the move alone frees node " + gpusched::quoted(cluster.name(e.from_node)) +
           (e.value_milli > 0 ? "" : ", which is not worth its price");
}

MoveExplanation explain_move(const Cluster& cluster, Cluster& after, const Scope& scope,
                             std::span<const ClosedBy> closed, const AnyPlacementRule& rule, TaskId task,
                             NodeId node, const Options& options) {
    MoveExplanation result{.task = task, .from_node = after.node_of(task), .to_node = node};
    if (!after.is_placed(task) || !cluster.is_placed(task)) {
        result.fate = MoveFate::not_placed;
    } else if (result.from_node == node) {
        result.fate = MoveFate::is_there;
    } else if (result.fixed_by = fixed_by(cluster, task, options, scope.movable[index(task)] != 0);
               result.fixed_by != FixedBy::none) {
        result.fate = MoveFate::task_stays;
    } else {
        result.closed_by = closed[index(node)];
        result.obstacle = gpusched::detail::find_permanent_obstacle(after, task, node);
        const bool is_permanent = result.obstacle != Obstacle::none;
        if (!is_permanent) result.obstacle = find_obstacle(after, task, node);
        if (result.obstacle == Obstacle::not_eligible)
            result.obstacle = find_eligibility_obstacle(after, task, node);
        result.fate = is_permanent                         ? MoveFate::obstacle
                      : result.closed_by != ClosedBy::none ? MoveFate::node_closed
                      : result.obstacle != Obstacle::none  ? MoveFate::obstacle
                      : rule.allows(after, task, node)     ? MoveFate::possible
                                                           : MoveFate::refused;
        if (result.fate == MoveFate::obstacle && !is_permanent)
            result.victims = VictimChoice(cluster, after, scope, rule, task, node).fewest();
        const auto home = cluster.node_of(task);
        const bool had_moved = result.from_node != home || after.gpus_of(task) != cluster.gpus_of(task);
        const auto cost = cluster.inventory().tasks.move_cost[index(task)];
        // It returns to its first place only if its GPUs there are free.
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
    detail::check_nodes(problems, "node", cluster, {node});
    problems.throw_if_any();
    auto after = apply(cluster, plan);
    const auto scope = make_scope(cluster, options);
    const auto closed = detail::closed_nodes(cluster, after, options);
    const auto rule = detail::rule_after(plan, after, options);
    auto result = detail::explain_move(cluster, after, scope, closed, rule, task, node, options);
    const bool after_plan = !plan.moves.empty() || !plan.evictions.empty() || !plan.placements.empty();
    result.text = detail::move_text(cluster, result, options, after_plan);
    return result;
}

}  // namespace gpusched::consolidation
