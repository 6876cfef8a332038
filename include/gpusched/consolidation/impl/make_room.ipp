#pragma once

#include <gpusched/allocation/detail/gang.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/make_room.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/wave_order.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/model/apply.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation {
namespace detail {

/// Direct moves that let the pods in, in one region of the cluster.
class RoomSearch {
  public:
    RoomSearch(const Cluster& cluster, const Scope& scope, const allocation::detail::Gang& gang)
        : work_(cluster), scope_(scope), gang_(gang), inside_(cluster.node_slots()),
          emptied_(cluster.node_slots()) {
        work_.commit();
    }

    /// The moves, in an order in which each is possible; nothing where some pod finds no room.
    std::optional<std::vector<Step>> run(std::span<const NodeId> region, Budget& budget) {
        work_.rollback(0);
        steps_.clear();
        std::fill(inside_.begin(), inside_.end(), std::uint8_t{0});
        std::fill(emptied_.begin(), emptied_.end(), std::uint8_t{0});
        for (const auto node : region) inside_[index(node)] = 1;
        const auto by_size = order_by(gang_.classes.size(), [&](std::size_t c) {
            const auto i = index(gang_.classes[c].sample);
            return std::tuple(-gang_.weight(gang_.classes[c]), -gang_.inv.tasks.cpu_milli[i]);
        });
        for (const auto c : by_size)
            if (!let_in(gang_.classes[c], region, budget)) return std::nullopt;
        return steps_;
    }
    [[nodiscard]] const Cluster& after() const { return work_; }
    /// Nodes that the pods take from others: nothing is to move there.
    [[nodiscard]] const std::vector<std::uint8_t>& emptied() const { return emptied_; }

  private:
    bool put(TaskId pod, NodeId node) {
        if (find_obstacle(work_, pod, node) != Obstacle::none) return false;
        const bool gpus = gang_.inv.tasks.gpu_count[index(pod)] > 0;
        work_.assign(pod, node,
                     (gpus ? allocation::ByWish{}(work_, pod, node) : GpuMask{0}) |
                         free_devices_for(work_, pod, node));
        return true;
    }

    bool let_in(const allocation::detail::PodClass& pods, std::span<const NodeId> region, Budget& budget) {
        std::size_t next = 0;
        const auto pod = [&] { return gang_.pods[pods.pods[next]]; };
        for (const auto node : region)
            while (next < pods.pods.size() && put(pod(), node)) ++next;
        if (next == pods.pods.size()) return true;
        // What it costs to free each node for one pod; ties: fewer moves, then the node's order.
        std::vector<std::tuple<std::int64_t, std::size_t, NodeId>> nodes;
        for (const auto node : region)
            if (const auto leave = who_leaves(pod(), node, {}); !leave.empty())
                nodes.emplace_back(cost(leave), leave.size(), node);
        std::sort(nodes.begin(), nodes.end());
        for (const auto& [price, moves, node] : nodes) {
            while (next < pods.pods.size() && !budget.exhausted() && free(pod(), node)) ++next;
            if (next == pods.pods.size()) return true;
            if (budget.exhausted()) return false;
        }
        return false;
    }

    [[nodiscard]] std::int64_t cost(const std::vector<TaskId>& tasks) const {
        std::int64_t sum = 0;
        for (const auto task : tasks) sum += gang_.inv.tasks.move_cost[index(task)];
        return sum;
    }

    /// Movable tasks without which the pod would fit, as few as can be dropped one by one; empty = none would do.
    [[nodiscard]] std::vector<TaskId> who_leaves(TaskId pod, NodeId node, const std::vector<TaskId>& stuck) {
        const auto obstacle = find_obstacle(work_, pod, node);
        if (obstacle == Obstacle::none || obstacle == Obstacle::cordoned ||
            obstacle == Obstacle::not_eligible)
            return {};
        std::vector<TaskId> tasks;
        for (const auto task : work_.tasks_on(node))
            if (index(task) < scope_.movable.size() && scope_.movable[index(task)] &&
                std::find(stuck.begin(), stuck.end(), task) == stuck.end())
                tasks.push_back(task);
        // The most GPUs per move cost leave first.
        std::sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
            const auto weight = [&](TaskId t) {
                return static_cast<double>(work_.gpu_milli(t) + 1) /
                       static_cast<double>(gang_.inv.tasks.move_cost[index(t)] + 1);
            };
            const double x = weight(a), y = weight(b);
            return x != y ? x > y : a < b;
        });
        const auto start = work_.checkpoint();
        std::vector<std::pair<TaskId, GpuMask>> left;
        for (const auto task : tasks) {
            if (find_obstacle(work_, pod, node) == Obstacle::none) break;
            left.emplace_back(task, work_.gpus_of(task));
            work_.remove(task);
        }
        std::vector<TaskId> leave;
        if (find_obstacle(work_, pod, node) == Obstacle::none)
            for (auto at = left.rbegin(); at != left.rend();
                 ++at) {  // back again where the pod fits all the same
                const auto before = work_.checkpoint();
                work_.assign(at->first, node, at->second);
                if (find_obstacle(work_, pod, node) == Obstacle::none) continue;
                work_.rollback(before);
                leave.push_back(at->first);
            }
        work_.rollback(start);
        return leave;
    }

    /// Moves tasks off the node and puts the pod there, or changes nothing.
    bool free(TaskId pod, NodeId node) {
        if (put(pod, node)) return true;
        std::vector<TaskId> stuck;
        while (true) {
            const auto leave = who_leaves(pod, node, stuck);
            if (leave.empty()) return false;
            const auto start = work_.checkpoint();
            const auto steps = steps_.size();
            const auto was = std::exchange(emptied_[index(node)], std::uint8_t{1});
            const auto without =
                std::find_if(leave.begin(), leave.end(), [&](TaskId t) { return !move(t, node); });
            if (without == leave.end() && put(pod, node)) return true;
            work_.rollback(start);
            steps_.resize(steps);
            emptied_[index(node)] = was;
            if (without == leave.end()) return false;
            stuck.push_back(*without);
        }
    }

    /// To the tightest node that takes it: outside the region if there is one.
    bool move(TaskId task, NodeId from) {
        std::optional<std::tuple<std::uint8_t, std::int64_t, std::int64_t, NodeId>> best;
        for (const auto node : work_.nodes()) {
            if (!scope_.may_receive[index(node)] || emptied_[index(node)] || node == from) continue;
            const std::tuple key(inside_[index(node)], work_.gpu_free_total_milli(node),
                                 work_.cpu_free_milli(node), node);
            if (best && *best <= key) continue;
            if (find_obstacle(work_, task, node) == Obstacle::none) best = key;
        }
        if (!best) return false;
        const auto to = std::get<3>(*best);
        const bool gpus = gang_.inv.tasks.gpu_count[index(task)] > 0;
        const auto mask =
            (gpus ? allocation::ByWish{}(work_, task, to) : GpuMask{0}) | free_devices_for(work_, task, to);
        steps_.push_back({task, from, to, mask, 0});
        work_.assign(task, to, mask);
        return true;
    }

    Cluster work_;
    const Scope& scope_;
    const allocation::detail::Gang& gang_;
    std::vector<std::uint8_t> inside_, emptied_;
    std::vector<Step> steps_;
};

/// The gang in the cluster that moves lead to; `as` where it could be before.
inline allocation::Allocation place_after(Cluster after, std::span<const TaskId> pods,
                                          const allocation::AllocateOptions& options, Budget& budget,
                                          const Cluster* as) {
    after.commit();
    auto found = allocation::detail::Gang(after, pods, options, &budget).place();
    if (found.placed || as == nullptr) return found;
    for (const auto pod : pods) {
        const auto node = as->node_of(pod);
        if (find_obstacle(after, pod, node) != Obstacle::none ||
            !gpus_fit(after, pod, node, as->gpus_of(pod)))
            return found;
        after.assign(pod, node, as->gpus_of(pod));
    }
    // Only described: the pods are where they are.
    Cluster before(after);
    for (const auto pod : pods) before.remove(pod);
    const allocation::detail::Gang gang(before, pods, options, &budget);
    for (const auto pod : pods) before.assign(pod, after.node_of(pod), after.gpus_of(pod));
    gang.describe(found);
    found.proven = false;
    found.obstacle = Obstacle::none;
    found.reason.clear();
    return found;
}

}  // namespace detail

GPUSCHED_INLINE Room make_room(const Cluster& cluster, std::span<const TaskId> pods,
                               const allocation::AllocateOptions& allocate, const Options& options,
                               const Context& context) {
    validate(options, cluster);
    if (options.clear)
        throw InvalidInput(bad_value("clear", number_text(options.clear->size()) + " nodes",
                                     "none: the gang says where room is needed"));
    if (allocate.time_limit)
        throw InvalidInput(bad_value("time_limit", number_text(*allocate.time_limit),
                                     "none in the gang's options: one limit holds for all"));
    Budget budget(context, options.time_limit);
    Cluster bare(cluster);
    bare.commit();
    const allocation::detail::Gang gang(bare, pods, allocate, &budget);
    Room room;
    const auto start = bare.checkpoint();
    room.allocation = gang.place();
    bare.rollback(start);
    if (room.allocation.placed) {
        room.plan = allocation::to_plan(room.allocation);
        room.stop_reason = room.allocation.stop_reason;
        return room;
    }
    const auto scope = make_scope(cluster, options);
    const auto& inv = cluster.inventory();
    std::map<DomainId, std::vector<NodeId>> by_domain;
    std::vector<NodeId> everywhere;
    for (const auto node : cluster.nodes())
        if (inv.nodes.receives(node)) {
            by_domain[inv.domain(gang.region.value_or(gang.level), node)].push_back(node);
            everywhere.push_back(node);
        }
    std::vector<std::vector<NodeId>> regions;
    for (auto& [domain, nodes] : by_domain) regions.push_back(std::move(nodes));
    // A gang that only prefers one domain gets it where that costs no more.
    if (!gang.region && regions.size() > 1) regions.push_back(std::move(everywhere));

    // Cost; traffic and entropy in steps that floating point does not blur; moves.
    std::optional<std::tuple<std::int64_t, double, double, std::size_t>> least;
    const auto consider = [&](std::vector<Move> moves, std::uint32_t waves, const Cluster& after,
                              const Cluster* as) {
        std::int64_t cost = 0;
        for (const auto& move : moves) cost += inv.tasks.move_cost[index(move.task)];
        if (options.max_moves && static_cast<std::int64_t>(moves.size()) > *options.max_moves) return false;
        if (options.max_move_cost && cost > *options.max_move_cost) return false;
        if (least && *least <= std::tuple(cost, 0.0, 0.0, moves.size())) return true;
        auto found = detail::place_after(after, pods, allocate, budget, as);
        if (!found.placed) return false;
        const std::tuple key(cost, std::round(found.cross_traffic * 1e9), std::round(found.entropy * 1e9),
                             moves.size());
        if (least && *least <= key) return true;
        least = key;
        room.move_cost = cost;
        room.plan = allocation::to_plan(found);
        room.plan.waves = waves;
        room.plan.moves = std::move(moves);
        std::vector<std::uint8_t> used(cluster.node_slots());
        for (const auto& p : found.pods)
            if (!inv.tasks.daemon[index(p.task)]) used[index(p.node)] = 1;
        for (const auto node : cluster.nodes())
            if (cluster.occupants(node) > 0 && after.occupants(node) == 0 && !used[index(node)])
                room.plan.vacated_nodes.push_back(node);
        room.allocation = std::move(found);
        return true;
    };

    detail::RoomSearch search(cluster, scope, gang);
    constexpr int most_domains_for_chains = 8;
    int chains_tried = 0;
    std::int64_t done = 0;
    for (const auto& nodes : regions) {
        budget.report("make room", done++, static_cast<std::int64_t>(regions.size()));
        if (budget.exhausted()) break;
        // What must stay leaves too few GPUs in some regions, whatever moves.
        std::int64_t have = 0, need = 0;
        for (const auto node : nodes) {
            const auto healthy = cluster.healthy_gpus(node);
            have += whole_gpu_milli * gpu_count(healthy);
            for (const auto task : cluster.tasks_on(node))
                if (!scope.movable[index(task)] && !inv.tasks.standby[index(task)])
                    have -= std::int64_t{inv.tasks.gpu_share_milli[index(task)]} *
                            gpu_count(static_cast<GpuMask>(cluster.gpus_of(task) & healthy));
        }
        for (const auto pod : pods) need += cluster.gpu_milli(pod);
        if (have < need) continue;
        ++room.domains_considered;
        bool found = false;
        if (const auto steps = search.run(nodes, budget)) {
            auto closed = search.emptied();
            for (std::size_t n = 0; n < closed.size(); ++n) closed[n] = closed[n] || !scope.may_receive[n];
            auto order = order_into_waves(cluster, *steps, closed, options);
            if (order.dropped_chains == 0)
                found = consider(std::move(order.moves), order.waves, order.after, &search.after());
        }
        if (found || budget.exhausted() || least) continue;
        if (!gang.region && &nodes != &regions.back()) continue;  // direct moves anywhere come first
        if (++chains_tried > most_domains_for_chains) continue;
        // Chains of moves, which vacate whole nodes: those that cost least, twice as many each time.
        std::vector<std::tuple<std::int64_t, NodeId>> targets;
        for (const auto node : nodes) {
            if (!scope.may_vacate[index(node)] || gpu_count(cluster.healthy_gpus(node)) == 0) continue;
            std::int64_t cost = 0;
            for (const auto task : cluster.tasks_on(node)) cost += inv.tasks.move_cost[index(task)];
            targets.emplace_back(cost, node);
        }
        std::sort(targets.begin(), targets.end());
        for (std::size_t count = 1; !targets.empty() && !budget.exhausted(); count *= 2) {
            auto how = options;
            how.bound_method = BoundMethod::none;
            how.polish_time.reset();
            if (options.time_limit) how.time_limit = std::max(0.0, *options.time_limit - budget.elapsed_s());
            how.clear.emplace();
            for (std::size_t i = 0; i < std::min(count, targets.size()); ++i)
                how.clear->push_back(std::get<1>(targets[i]));
            const auto plan = consolidate(cluster, how, context).plan;
            if (!plan.moves.empty() && consider(plan.moves, plan.waves, apply(cluster, plan), nullptr)) break;
            if (count >= targets.size()) break;
        }
    }
    room.stop_reason = budget.reason();
    return room;
}

}  // namespace GPUSCHED_NAMESPACE::consolidation
