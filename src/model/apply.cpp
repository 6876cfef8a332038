// SPDX-License-Identifier: Apache-2.0
#include "model/placement_order.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/model/apply.hpp>
#include <gpusched/model/describe_obstacle.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusched {

namespace detail {

// Carries out one plan on its own copy of the snapshot.
struct PlanExecutor {
    Cluster cluster;

    [[noreturn]] static void refuse(const std::string& step, const std::string& why) {
        throw InvalidInput("plan: " + step + " " + why);
    }

    // Throws unless the task could take those GPUs of that node now.
    void require_fit(const std::string& step, TaskId task, NodeId node, GpuMask gpus) const {
        if (const auto found = find_obstacle(cluster, task, node); found != Obstacle::none)
            refuse(step, "does not fit: " + describe_obstacle(cluster, task, node));
        if (!gpus_fit(cluster, task, node, gpus)) refuse(step, "does not fit on the GPUs it names");
    }

    void evict(TaskId task) {
        const auto& t = cluster.inventory().tasks;
        const auto owner = "eviction of task " + gpusched::quoted(cluster.name(task));
        if (!cluster.is_placed(task)) refuse(owner, "is impossible: it does not run");
        if (!t.is(TaskTrait::evictable, task))
            refuse(owner, "is not allowed: it is not preemptible, or locked, standby or a daemon");
        cluster.remove(task);
    }

    static std::string text(const Cluster& cluster, const Move& m) {
        return "move of task " + gpusched::quoted(cluster.name(m.task)) + " to node " +
               gpusched::quoted(cluster.name(m.to)) + " in wave " + std::to_string(m.wave);
    }

    void run_wave(std::span<const Move> moves) {
        const auto& t = cluster.inventory().tasks;
        std::vector<TaskId> moving;
        for (const auto& m : moves) {
            moving.push_back(m.task);
            const auto i = index(m.task);
            if (t.locked[i] || t.standby[i] || t.daemon[i])
                refuse(text(cluster, m), "is not allowed: it is locked, standby or a daemon");
            const auto how = t.how(m.task);
            if (how == Mobility::none || move_mode(how) != m.how)
                refuse(text(cluster, m), "is a " + std::string(enum_name(m.how)) +
                                             ", but the task can move by " + std::string(enum_name(how)));
            if (cluster.node_of(m.task) != m.from)
                refuse(text(cluster, m),
                       "starts from node " + gpusched::quoted(cluster.name(m.from)) + ", where it is not");
            if (m.from == m.to) refuse(text(cluster, m), "leads to where it is already");
            // The books take no other number.
            const auto devices =
                t.is(TaskTrait::extras, m.task) ? m.gpus & cluster.devices(m.to) : GpuMask{0};
            if (gpu_count(m.gpus & ~devices) != t.gpu_count[i])
                refuse(text(cluster, m), "names " + std::to_string(gpu_count(m.gpus & ~devices)) +
                                             " GPUs, but the task takes " + std::to_string(t.gpu_count[i]));
        }
        std::sort(moving.begin(), moving.end());
        if (const auto twice = std::adjacent_find(moving.begin(), moving.end()); twice != moving.end())
            refuse("wave " + std::to_string(moves.front().wave),
                   "moves task " + gpusched::quoted(cluster.name(*twice)) + " twice");
        for (const auto& m : moves)
            if (m.how == MoveMode::restart) cluster.remove(m.task);
        // All destinations are taken together, so each is judged with all others in place.
        for (const auto& m : moves) cluster.reserve(m.task, m.to, m.gpus);
        for (const auto& m : moves) {
            cluster.unreserve(m.task, m.to, m.gpus);
            require_fit(text(cluster, m), m.task, m.to, m.gpus);
            cluster.reserve(m.task, m.to, m.gpus);
        }
        for (const auto& m : moves) {
            cluster.unreserve(m.task, m.to, m.gpus);
            cluster.assign(m.task, m.to, m.gpus);
        }
    }

    /// @param last false = one that may be possible later waits, and the answer is false
    bool place(const Placement& p, bool last) {
        const auto owner = "placement of task " + gpusched::quoted(cluster.name(p.task)) + " on node " +
                           gpusched::quoted(cluster.name(p.node));
        if (cluster.is_placed(p.task)) refuse(owner, "is impossible: it runs already");
        if (!last && may_pass(find_obstacle(cluster, p.task, p.node))) return false;
        require_fit(owner, p.task, p.node, p.gpus);
        cluster.assign(p.task, p.node, p.gpus);
        return true;
    }
};

}  // namespace detail

GPUSCHED_EXPORT Cluster apply(const Cluster& cluster, const Plan& plan) {
    validate(plan, cluster);
    detail::PlanExecutor executor{cluster};
    for (const auto task : plan.evictions) executor.evict(task);
    const std::span moves(plan.moves);
    for (std::size_t first = 0, last; first < moves.size(); first = last) {
        const auto wave = moves[first].wave;
        for (last = first + 1; last < moves.size() && moves[last].wave == wave;) ++last;
        executor.run_wave(moves.subspan(first, last - first));
    }
    const auto waiting = detail::place_in_some_order(
        plan.placements.size(), [&](std::size_t i) { return executor.place(plan.placements[i], false); });
    for (const auto i : waiting) executor.place(plan.placements[i], true);
    executor.cluster.commit();
    return std::move(executor.cluster);
}

}  // namespace gpusched
