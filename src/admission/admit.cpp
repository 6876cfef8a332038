// SPDX-License-Identifier: Apache-2.0
// Admission: checks the options, runs the search, builds the plan, explains rejections.
#include "admission/search.hpp"
#include "allocation/gang.hpp"
#include "allocation/tally.hpp"
#include "model/node_match.hpp"
#include "model/placement_order.hpp"

#include <gpusched/admission/admit.hpp>
#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/config.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/waves.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace gpusched::admission {

GPUSCHED_EXPORT void validate(const Options& options, const Cluster& cluster) {
    Problems problems;
    check_fields(problems, options);
    for (const auto node : options.exempt)
        if (!cluster.contains(node))
            problems.add(bad_value("exempt", "#" + number_text(index(node)),
                                   "nodes of the cluster's " + number_text(cluster.node_slots())));
    for (const auto task : options.spare)
        if (!cluster.contains(task))
            problems.add(bad_value("spare", "#" + number_text(index(task)),
                                   "tasks of the cluster's " + number_text(cluster.task_slots())));
    detail::check_quotas(problems, options.quotas);
    problems.throw_if_any();
}

namespace detail {

/// The cost of a plan by parts, except recalls.
static Cost cost_of(const Cluster& cluster, const Plan& plan, const Options& options) {
    const auto& inv = cluster.inventory();
    const auto now = options.now.value_or(inv.now);
    Cost cost;
    for (const auto& move : plan.moves) {
        const auto size = size_milli(cluster, move.task);
        cost.moves +=
            product(product(size, options.prices.move_price_s), inv.tasks.move_cost[index(move.task)]);
    }
    std::vector<std::int64_t> down(inv.budgets.size());
    for (const auto task : plan.evictions) {
        const auto size = size_milli(cluster, task);
        if (options.prices.work) cost.lost_work += product(size, preemption::unsaved_s(cluster, task, now));
        const bool again = std::any_of(plan.placements.begin(), plan.placements.end(),
                                       [&](const Placement& p) { return p.task == task; });
        (again ? cost.restarts : cost.losses) +=
            product(size, again ? options.prices.restart_s : options.prices.loss_s);
        for (const auto b : inv.budgets_of(task))
            if (++down[b] > inv.budgets[b].allows() && options.prices.budget_price_s)
                cost.budgets += *options.prices.budget_price_s * 1000;
    }
    cost.tasks = options.prices.task_price_s * 1000 *
                 static_cast<std::int64_t>(plan.moves.size() + plan.evictions.size());
    return cost;
}

/// Places `task` on the node, on other GPUs than `gpus` if necessary.
static bool try_place(Cluster& cluster, TaskId task, NodeId node, GpuMask& gpus) {
    if (find_obstacle(cluster, task, node) != Obstacle::none) return false;
    if (!gpus_fit(cluster, task, node, gpus))
        gpus = allocation::pick_gpus(allocation::ByWish{}, cluster, task, node);
    cluster.assign(task, node, gpus);
    return true;
}

/// Turns a solution into a plan; false if its moves cannot be ordered into waves.
static bool make_plan(const Cluster& cluster, const Solution& solution, const consolidation::Scope& scope,
                      const Options& options, Admission& made) {
    Plan plan;
    plan.evictions = solution.evictions;
    Cluster after;
    if (solution.moves.empty()) {
        after = cluster;
        after.commit();
        for (const auto task : solution.evictions) after.remove(task);
    } else {
        std::vector<std::uint8_t> closed(cluster.node_slots());
        for (std::size_t n = 0; n < closed.size(); ++n) closed[n] = !scope.receives(make_id<NodeId>(n));
        consolidation::Options limits;
        limits.limits = options.limits;
        if (!scope.may_open.empty()) limits.open_price = scope.open_price;
        auto order =
            consolidation::order_into_waves(cluster, solution.moves, closed, limits, {}, solution.evictions);
        if (order.dropped_chains > 0 || order.hops > 0) {  // one move per wave, in the order of the solution
            limits.limits.max_moves_per_wave = 1;
            order = consolidation::order_into_waves(cluster, solution.moves, closed, limits, {},
                                                    solution.evictions);
            if (order.dropped_chains > 0 || order.hops > 0) return false;
        }
        plan.waves = order.waves;
        plan.moves = std::move(order.moves);
        after = std::move(order.after);
        after.commit();
    }
    auto placements = solution.placements;
    std::int64_t borrowed = 0;
    for (const auto& move : plan.moves) {
        // The state at the time of the move is unknown here; counts the use beyond firm capacity at the end.
        const auto before = after.checkpoint();
        after.remove(move.task);
        borrowed += PriceTable::borrowed_milli(after, move.task, move.to, move.gpus);
        after.rollback(before);
    }
    const auto waiting = gpusched::detail::place_in_some_order(placements.size(), [&](std::size_t i) {
        auto& p = placements[i];
        if (find_obstacle(after, p.task, p.node) != Obstacle::none) return false;
        auto gpus = p.gpus;
        const auto before = after.checkpoint();
        if (!try_place(after, p.task, p.node, gpus)) return false;
        after.rollback(before);
        borrowed += PriceTable::borrowed_milli(after, p.task, p.node, gpus);
        after.assign(p.task, p.node, gpus);
        p.gpus = gpus;
        return true;
    });
    if (!waiting.empty()) return false;
    plan.placements = std::move(placements);
    // Only the sources of evictions and moves can be empty.
    const auto add_if_vacated = [&](NodeId node) {
        if (cluster.occupants(node) > 0 && after.occupants(node) == 0) plan.vacated_nodes.push_back(node);
    };
    for (const auto task : plan.evictions) add_if_vacated(cluster.node_of(task));
    for (const auto& move : plan.moves) add_if_vacated(move.from);
    std::sort(plan.vacated_nodes.begin(), plan.vacated_nodes.end());
    plan.vacated_nodes.erase(std::unique(plan.vacated_nodes.begin(), plan.vacated_nodes.end()),
                             plan.vacated_nodes.end());
    plan.opened_nodes = consolidation::opened_nodes(cluster, plan.moves);
    made.cost = cost_of(cluster, plan, options);
    made.cost.recalls = borrowed * options.prices.recall_price_s;
    made.plan = std::move(plan);
    return true;
}

/// Fills the fields that follow from the plan.
static void describe(const Cluster& cluster, std::span<const TaskId> pods, Admission& made) {
    made.admitted = true;
    std::map<TaskId, Placement> at;
    for (const auto& p : made.plan.placements) at[p.task] = p;
    for (const auto pod : pods) made.pods.push_back(at.at(pod));
    for (const auto task : made.plan.evictions)
        if (!at.contains(task)) made.lost.push_back(task);
    const auto& inv = cluster.inventory();
    std::map<std::uint32_t, std::int64_t> down;
    for (const auto task : made.plan.evictions)
        for (const auto b : inv.budgets_of(task)) ++down[b];
    for (const auto& [budget, count] : down)
        if (count > inv.budgets[budget].allows())
            made.broken_budgets.push_back({budget, count - inv.budgets[budget].allows()});
}

/// Says by counting that tasks that must keep running leave too few GPUs; empty if that is not so. Without Standby
/// tasks, which lend.
static std::string lack_of_gpus(const Cluster& cluster, std::span<const TaskId> pods,
                                const PriceTable& prices) {
    const auto& inv = cluster.inventory();
    std::int64_t has = 0, keeps = 0, needs = 0;
    for (const auto node : cluster.nodes()) {
        if (!inv.nodes.receives(node)) continue;
        has += std::int64_t{whole_gpu_milli} * gpu_count(cluster.healthy_gpus(node));
        for (const auto task : cluster.tasks_on(node)) {
            if (inv.tasks.standby[index(task)]) return {};
            const bool on_failed = (cluster.gpus_of(task) & inv.nodes.failed_gpus[index(node)]) != 0;
            if (prices[task].lose == never && !on_failed) keeps += cluster.gpu_milli(task);
        }
    }
    for (const auto pod : pods) needs += cluster.gpu_milli(pod);
    if (needs == 0 || keeps + needs <= has) return {};
    const auto gpus = [](std::int64_t milli) {
        return number_text(static_cast<double>(milli) / whole_gpu_milli);
    };
    return "too few GPUs even after all evictions: the nodes that accept tasks have " + gpus(has) +
           ", tasks that must keep running need " + gpus(keeps) +
           concat(", the ", words_of(cluster.inventory()).task, "s need ") + gpus(needs);
}

/// Gives the reason for a rejection: the first pod that fits nowhere even if all tasks leave that may, or
/// else the lack of places for displaced tasks.
/// @return whether this proves that no plan exists, whichever nodes tasks move to. Obstacles other than near and
///     spread only vanish when tasks leave; of a single pod, others do not change either if no task may leave
static bool explain(const Cluster& cluster, std::span<const TaskId> pods, const FilterAnswers& passes,
                    const PriceTable& prices, const allocation::Allocation& as_it_is, Admission& made) {
    Cluster emptied(cluster), work(cluster);
    emptied.commit();
    work.commit();
    bool may_leave = false;
    for (const auto task : cluster.tasks())
        if (prices[task].least < never) {
            emptied.remove(task);
            may_leave = true;
        }
    // Only tasks on the node leave.
    const auto obstacle_without_its_tasks = [&](TaskId pod, NodeId node) {
        const auto before = work.checkpoint();
        std::vector<TaskId> leave;
        for (const auto task : work.tasks_on(node))
            if (prices[task].least < never) leave.push_back(task);
        for (const auto task : leave) work.remove(task);
        const auto obstacle = find_obstacle(work, pod, node);
        work.rollback(before);
        return obstacle;
    };
    std::int64_t fewest = INT64_MAX;
    for (const auto pod : pods) {
        std::int64_t feasible = 0, filtered = 0;
        bool is_certain = true;
        std::vector<NodeId> refusing;
        for (const auto node : emptied.nodes()) {
            if (!passes(pod, node)) {
                ++filtered;
                continue;
            }
            const auto obstacle = find_obstacle(emptied, pod, node);
            // Other tasks can be needed: their leaving is no help then.
            if (obstacle == Obstacle::none || (gpusched::detail::may_pass(obstacle) &&
                                               obstacle_without_its_tasks(pod, node) == Obstacle::none))
                ++feasible;
            else
                refusing.push_back(node);
            if (gpusched::detail::may_pass(obstacle) && (may_leave || pods.size() > 1)) is_certain = false;
        }
        if (feasible == 0) {
            made.reason = "task " + gpusched::quoted(cluster.name(pod)) + " fits on no node";
            if (filtered > 0)
                made.reason += ": the filter rejects " + number_text(filtered) + " of " +
                               number_text(emptied.node_count()) + " nodes";
            const allocation::detail::Tally tally(emptied, pod, refusing);
            const auto blame = tally.blame();
            if (blame.rows.empty()) {
                if (filtered == 0) made.reason += ": the cluster has no nodes";
                return true;
            }
            made.obstacle = allocation::detail::obstacle_of(tally.constraint(blame.rows.front()));
            made.reason += ", even if every task leaves that may leave; ";
            if (blame.nodes > 0)
                made.reason += "the closest node is " + gpusched::quoted(cluster.name(blame.node)) + ": ";
            made.reason += made.obstacle == Obstacle::near ? gpusched::detail::describe_lonely(cluster, pod)
                                                           : tally.describe(blame.rows, blame.node);
            return is_certain;
        }
        fewest = std::min(fewest, feasible);
    }
    made.obstacle = as_it_is.obstacle;
    if (auto lack = lack_of_gpus(cluster, pods, prices); !lack.empty()) {
        made.reason = std::move(lack);
        return true;
    }
    const std::string word(words_of(cluster.inventory()).task);
    made.reason = number_text(fewest) + (fewest == 1 ? " node" : " nodes") + " could hold one " + word +
                  (passes ? " and pass the filter" : "") +
                  " if every task left that may leave, but no placement was found for " +
                  (pods.size() == 1 ? "the " + word : "all " + number_text(pods.size()) + " " + word + "s") +
                  " and the tasks that must keep running";
    if (!as_it_is.reason.empty())
        made.reason += "; without disturbing tasks: " +
                       (made.proven ? as_it_is.reason.substr(0, as_it_is.reason.find("; they were tried"))
                                    : as_it_is.reason);
    if (!made.proven) made.reason += " (not proven: the search ended early)";
    return false;
}

/// Names the limits that prevent the admission, by a plan without them; empty if there is no such plan. The
/// search gets the rest of the time limit, and its steps are added to `stats`.
static std::string describe_limits(const Cluster& cluster, std::span<const TaskId> pods,
                                   const Options& options, const Context& context, double elapsed_s,
                                   Statistics& stats) {
    auto without = options;
    if (without.time_limit) without.time_limit = std::max(0.0, *without.time_limit - elapsed_s);
    without.max_moves = without.max_evictions = without.max_cost_s = {};
    without.limits = {};
    without.standby = true;
    if (!without.prices.budget_price_s) without.prices.budget_price_s = highest_price_s;
    const auto other = admit(cluster, pods, without, context);
    stats.steps += other.stats.steps;
    stats.sets_checked += other.stats.sets_checked;
    if (!other.admitted) return {};
    const auto moves = static_cast<std::int64_t>(other.plan.moves.size());
    const auto evictions = static_cast<std::int64_t>(other.plan.evictions.size());
    std::string text;
    const auto add = [&](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
    const auto over = [&](const char* name, const std::optional<std::int64_t>& limit, std::int64_t found) {
        if (limit && found > *limit)
            add(std::string(name) + " is " + number_text(*limit) + ", but the plan needs " +
                number_text(found));
    };
    over("max_moves", options.max_moves, moves);
    over("max_evictions", options.max_evictions, evictions);
    if (options.max_cost_s && other.cost.total() - other.cost.budgets > *options.max_cost_s * 1000)
        add("max_cost_s is " + number_text(*options.max_cost_s) + ", but the plan costs " +
            number_text(static_cast<double>(other.cost.total() - other.cost.budgets) / 1000));
    if (!options.standby && other.cost.recalls > 0)
        add("standby is off, but the plan borrows from Standby tasks");
    for (const auto& broken : other.broken_budgets)
        if (!options.prices.budget_price_s)
            add("disruption budget " + gpusched::quoted(cluster.inventory().budget_names[broken.budget]) +
                " allows " + number_text(broken.over) + " fewer evictions than the plan needs");
    if (text.empty() && moves > 0 &&
        (options.limits.max_disrupted || options.limits.max_moves_per_wave ||
         options.limits.max_moves_per_node))
        add("max_disrupted, max_moves_per_wave or max_moves_per_node is too low");
    return text;
}

/// Nodes for all pods together, and a lower bound on the cost there.
struct Region {
    std::int64_t least = 0;
    std::vector<NodeId> nodes{};  ///< empty = all nodes
};

/// The domains of the level with enough GPUs for all pods, the lowest bounds first.
static std::vector<Region> regions_of(const Cluster& cluster, std::span<const TaskId> pods, Level level,
                                      NodeBounds& bounds) {
    const auto& inv = cluster.inventory();
    std::int64_t needed = 0;
    for (const auto pod : pods) needed += cluster.gpu_milli(pod);
    struct Domain {
        std::int64_t gpu_milli = 0, least_of_pod = never;
        Region region{};
    };
    std::map<DomainId, Domain> domains;
    for (const auto node : cluster.nodes())
        if (inv.nodes.receives(node)) {
            auto& domain = domains[inv.domain(level, node)];
            domain.gpu_milli += std::int64_t{whole_gpu_milli} * gpu_count(cluster.healthy_gpus(node));
            domain.region.nodes.push_back(node);
        }
    std::erase_if(domains, [&](const auto& d) { return d.second.gpu_milli < needed; });
    TaskId last = none<TaskId>;
    for (const auto pod : pods) {
        if (domains.empty()) break;
        if (last != none<TaskId> && request_key(cluster, pod) == request_key(cluster, last)) continue;
        last = pod;
        for (auto& [id, domain] : domains) domain.least_of_pod = never;
        for (const auto& entry : bounds.ranking(cluster, pod).unsorted())
            if (const auto at = domains.find(inv.domain(level, entry.node)); at != domains.end())
                at->second.least_of_pod = std::min(at->second.least_of_pod, entry.bound);
        for (auto& [id, domain] : domains)
            domain.region.least = std::max(domain.region.least, domain.least_of_pod);
    }
    std::vector<Region> regions;
    for (auto& [id, domain] : domains)
        if (domain.region.least < never) regions.push_back(std::move(domain.region));
    std::stable_sort(regions.begin(), regions.end(),
                     [](const Region& a, const Region& b) { return a.least < b.least; });
    return regions;
}

/// If the pods are in several domains of their preferred level, tries to place them in one domain at no
/// higher cost. Tries the domains with the lowest bounds, with as many steps in total as for one pod.
static void bring_together(const Cluster& cluster, const allocation::detail::Gang& gang, Search& search,
                           NodeBounds& bounds, const Options& options) {
    constexpr std::size_t most_domains = 8;
    const auto pods = gang.pods;
    if (gang.required_level || pods.size() < 2 || search.solutions().empty()) return;
    const auto& inv = cluster.inventory();
    std::vector<DomainId> used;
    for (const auto& p : search.solutions().back().placements)
        if (std::find(pods.begin(), pods.end(), p.task) != pods.end())
            used.push_back(inv.domain(gang.level, p.node));
    if (std::all_of(used.begin(), used.end(), [&](DomainId d) { return d == used.front(); })) return;
    const auto regions = regions_of(cluster, pods, gang.level, bounds);
    const auto share = std::max<std::int64_t>(1, options.search.search_limit / std::int64_t{most_domains});
    for (std::size_t r = 0; r < std::min(most_domains, regions.size()); ++r)
        if (regions[r].least > search.best() || search.match(regions[r].nodes, share)) return;
}

/// The means that a search can do without, in the order in which they are taken away.
enum class Means { budget_price, standby, moves, evictions, replace };
constexpr std::array all_means{Means::budget_price, Means::standby, Means::moves, Means::evictions,
                               Means::replace};

/// Takes one of the means away; returns false if the options do not allow it, or if nothing is left then.
static bool take_away(Means means, const Inventory& inventory, Options& options) {
    switch (means) {
    case Means::budget_price:
        return !inventory.budgets.empty() && std::exchange(options.prices.budget_price_s, std::nullopt);
    case Means::standby: {
        const auto& standby = inventory.tasks.standby;
        const bool lends = std::any_of(standby.begin(), standby.end(), [](auto is) { return is != 0; });
        return lends && std::exchange(options.standby, false);
    }
    case Means::moves:
        return options.evictions && std::exchange(options.moves, false);
    case Means::evictions:
        return options.moves && std::exchange(options.evictions, false);
    case Means::replace:
        return options.evictions && std::exchange(options.replace, false);
    }
    return false;
}

static Admission admit_by(std::span<const Means> means, bool opens, const Cluster& cluster,
                          std::span<const TaskId> pods, const Options& given, const Context& context);

/// Returns whether some task could move to a node that is empty.
static bool has_empty_target(const Cluster& cluster, const PriceTable& prices, const Options& options) {
    const auto& inv = cluster.inventory();
    std::vector<NodeId> empty;
    for (const auto node : cluster.nodes())
        if (cluster.occupants(node) == 0 && inv.nodes.receives(node) &&
            std::find(options.exempt.begin(), options.exempt.end(), node) == options.exempt.end())
            empty.push_back(node);
    const auto tasks = cluster.tasks();
    return std::any_of(tasks.begin(), tasks.end(), [&](TaskId task) {
        return prices[task].move < never && std::any_of(empty.begin(), empty.end(), [&](NodeId node) {
                   return inv.eligible(task, node) &&
                          find_resource_obstacle(cluster, task, node) == Obstacle::none;
               });
    });
}

/// After a search without result, searches without one or more of `means`. More means can use up the steps of
/// a search, but must not prevent a plan.
static void try_with_less(std::span<const Means> means, bool opens, const Cluster& cluster,
                          std::span<const TaskId> pods, const Options& options, const Context& context,
                          Budget& budget, Admission& made) {
    while (!means.empty() && !made.admitted && made.stop_reason == StopReason::completed) {
        if (budget.exhausted()) {
            made.stop_reason = budget.reason();
            return;
        }
        auto less = options;
        const bool is_less = take_away(means.front(), cluster.inventory(), less);
        means = means.subspan(1);
        if (!is_less) continue;
        if (less.time_limit) less.time_limit = budget.remaining_s();
        auto other = admit_by(means, opens, cluster, pods, less, context);
        other.stats.steps += made.stats.steps;
        other.stats.sets_checked += made.stats.sets_checked;
        made.stats = other.stats;
        made.stop_reason = other.stop_reason;
        if (!other.admitted) continue;
        // The bound of the search with all means holds, but not the one of a search with less.
        other.bound = std::min(made.bound.value_or(never), other.cost.total());
        other.proven = other.bound == other.cost.total();
        made = std::move(other);
    }
}

/// The running tasks of jobs that run several. Slurm requeues whole jobs: none moves without the others of its job.
static std::vector<TaskId> parts_of_jobs(const Cluster& cluster) {
    std::map<JobId, std::vector<TaskId>> running;
    for (const auto task : cluster.tasks())
        if (const auto job = cluster.inventory().tasks.job[index(task)];
            job != none<JobId> && cluster.is_placed(task))
            running[job].push_back(task);
    std::vector<TaskId> parts;
    for (const auto& [job, tasks] : running)
        if (tasks.size() > 1) parts.insert(parts.end(), tasks.begin(), tasks.end());
    return parts;
}

/// Whether it runs and is a component of a heterogeneous job, which the export for Slurm does not requeue.
static bool is_component(const Cluster& cluster, TaskId task) {
    return cluster.is_placed(task) && cluster.name(task).find('+') != std::string::npos;
}

std::string rule_of_slurm(const Cluster& cluster, std::span<const TaskId> pods) {
    const auto& inv = cluster.inventory();
    if (!gpusched::detail::is_slurm(inv)) return {};
    const auto evicts = [&](TaskId task) {
        return inv.tasks.preemptible[index(task)] && std::all_of(pods.begin(), pods.end(), [&](TaskId pod) {
                   return inv.tasks.priority[index(task)] < inv.tasks.priority[index(pod)];
               });
    };
    const auto tasks = cluster.tasks();
    const bool keeps = std::any_of(tasks.begin(), tasks.end(), [&](TaskId task) {
        return is_component(cluster, task) && (cluster.is_movable(task) || evicts(task));
    });
    const auto parts = parts_of_jobs(cluster);
    const bool holds = std::any_of(parts.begin(), parts.end(), [&](TaskId task) {
        return !is_component(cluster, task) && cluster.is_movable(task);
    });
    if (!keeps && !holds) return {};
    return concat(holds ? "jobs with several tasks do not move" : "", holds && keeps ? " and " : "",
                  keeps ? "heterogeneous jobs stay" : "", ", because Slurm requeues whole jobs");
}

/// `admit` for valid options.
/// @param means that a further search may do without; all of them: describes a failure
/// @param opens whether tasks may move to nodes that were empty
static Admission admit_by(std::span<const Means> means, bool opens, const Cluster& cluster,
                          std::span<const TaskId> pods, const Options& given, const Context& context) {
    Admission made;
    auto options = given;
    if (options.max_moves == 0) options.moves = false;
    if (options.max_evictions == 0) options.evictions = false;
    Budget budget(context, options.time_limit);
    budget.report("admission", 0, 0);
    allocation::AllocateOptions as_it_is;
    as_it_is.level = options.level;
    as_it_is.mode = options.mode;
    Cluster work(cluster);
    work.commit();
    const allocation::detail::Gang gang(work, pods, as_it_is, &budget);
    if (auto breach = find_quota_breach(cluster, pods, options.quotas)) {
        made.obstacle = breach->obstacle;
        made.reason = std::move(breach->reason);
        made.proven = true;
        return made;
    }
    const auto placed = gang.place();
    work.rollback(0);
    if (placed.obstacle == Obstacle::waiting) {
        made.obstacle = placed.obstacle;
        made.reason = placed.reason;
        made.proven = true;
        return made;
    }
    Solution known{.cost = 0, .evictions = {}, .moves = {}, .placements = placed.pods};
    const FilterAnswers passes(cluster, options.filter);
    const bool allowed = std::all_of(placed.pods.begin(), placed.pods.end(),
                                     [&](const Placement& p) { return passes(p.task, p.node); });
    if (placed.placed && allowed) {
        std::int64_t borrowed = 0;
        for (const auto& p : placed.pods) {
            borrowed += PriceTable::borrowed_milli(work, p.task, p.node, p.gpus);
            work.assign(p.task, p.node, p.gpus);
        }
        work.rollback(0);
        known.cost = borrowed * options.prices.recall_price_s;
        if (borrowed == 0 || (options.standby && known.cost == 0)) {
            made.plan.placements = placed.pods;
            made.bound = 0;
            made.proven = true;
            made.stop_reason = budget.reason();
            describe(cluster, pods, made);
            return made;
        }
        if (!options.standby) known.cost = never;
    } else {
        known.cost = never;
    }
    consolidation::Options movable;
    movable.limits.max_disrupted = options.limits.max_disrupted;
    movable.exempt = options.exempt;
    if (opens) movable.open_price = 0;
    auto scope = consolidation::make_scope(cluster, movable);
    if (gpusched::detail::is_slurm(cluster.inventory()))
        for (const auto task : parts_of_jobs(cluster)) scope.movable[index(task)] = 0;
    preemption::detail::GangTable gangs;
    gangs.read(cluster);
    const PriceTable prices(cluster, pods, options, scope, gangs);
    std::int64_t needed_milli = 0;
    for (const auto pod : pods) needed_milli += cluster.gpu_milli(pod);
    NodeBounds bounds(cluster, prices, needed_milli);
    Search search(cluster, std::move(work), pods, options, passes, scope, prices, gangs, bounds, budget,
                  made.stats);
    search.offer(std::move(known));
    const auto regions = gang.required_level ? regions_of(cluster, pods, *gang.required_level, bounds)
                                             : std::vector<Region>(1);
    using enum Search::PassKind;
    for (const auto kind : {usual, largest_first, deferred})
        for (const auto& region : regions) {
            if (region.least >= search.best()) break;
            search.run(region.nodes, kind);
        }
    bring_together(cluster, gang, search, bounds, options);
    for (auto solution = search.solutions().rbegin(); solution != search.solutions().rend(); ++solution)
        if (make_plan(cluster, *solution, scope, options, made)) {
            describe(cluster, pods, made);
            break;
        }
    made.stop_reason = budget.reason();
    auto lower = search.lower_bound();
    // The search omits all that costs more than its cheapest solution, even if that did not become a plan.
    if (!search.solutions().empty()) lower = std::min(lower, search.solutions().back().cost);
    if (made.admitted) lower = std::min(lower, made.cost.total());
    // Why no plan costs less than `lower`. Take a cheapest plan, and place its pods in the order of the search,
    // then each displaced task, on their final nodes.
    // 1. Except for near and spread, obstacles only vanish when tasks leave. So the tasks that finally leave
    //    the node and the groups in question contain one of the minimal sets that the search tries
    //    (CoverFinder). The other tasks leave for a later placement, or for none.
    // 2. A task that is evicted and returns to its own node could have stayed if GPUs are alike: exchange the
    //    GPUs that the arrivals got from it. Otherwise the search also displaces tasks there for it
    //    (`displaces_at_home`).
    // 3. If the search does not try all choices, it sets `incomplete_`, and the lower bound of that part
    //    counts: GPUs that differ (`has_other_gpus`), lent GPUs, near and spread, gangs that break, moves
    //    without an order, limits on steps, depth, nodes and sets.
    // 4. The bounds count each displaced task at its least price and assume nothing about its new place,
    //    except that a move ends on another node, and that a task does not fit beside a pod if their GPUs
    //    together exceed the node's. They add only what must be lost for good because the cluster is too
    //    small (NodeBounds, PodBounds).
    made.proven = made.admitted ? lower == made.cost.total() : lower >= never && search.solutions().empty();
    if (lower < never) made.bound = lower;
    if (!made.admitted && !made.proven)
        try_with_less(means, opens, cluster, pods, options, context, budget, made);
    if (!made.admitted && means.size() == all_means.size()) {
        if (explain(cluster, pods, passes, prices, placed, made)) {
            made.proven = true;
            made.bound.reset();
        } else if (!opens && made.stop_reason == StopReason::completed &&
                   has_empty_target(cluster, prices, options)) {
            auto less = given;
            if (less.time_limit) less.time_limit = budget.remaining_s();
            auto other = admit_by(means, true, cluster, pods, less, context);
            other.stats.steps += made.stats.steps;
            other.stats.sets_checked += made.stats.sets_checked;
            return other;
        }
        if (made.obstacle >= Obstacle::cpu)  // not of constraints that never change
            if (const auto rule = rule_of_slurm(cluster, pods); !rule.empty()) made.reason += "; " + rule;
        const auto is_limited = given.max_moves || given.max_evictions || given.max_cost_s ||
                                !given.standby || given.limits.max_disrupted ||
                                given.limits.max_moves_per_wave || given.limits.max_moves_per_node ||
                                (!given.prices.budget_price_s && !cluster.inventory().tasks.budgets.empty());
        if (is_limited && made.stop_reason == StopReason::completed)
            if (const auto limits =
                    describe_limits(cluster, pods, given, context, budget.elapsed_s(), made.stats);
                !limits.empty())
                made.reason = "no plan within the limits was found; a plan without them shows: " + limits;
    }
    return made;
}

}  // namespace detail

GPUSCHED_EXPORT Admission admit(const Cluster& cluster, std::span<const TaskId> pods, const Options& options,
                                const Context& context) {
    validate(options, cluster);
    if (!gpusched::detail::is_slurm(cluster.inventory()))
        return detail::admit_by(detail::all_means, false, cluster, pods, options, context);
    auto without = options;
    for (const auto task : cluster.tasks())
        if (detail::is_component(cluster, task)) without.spare.push_back(task);
    return detail::admit_by(detail::all_means, false, cluster, pods, without, context);
}

}  // namespace gpusched::admission
