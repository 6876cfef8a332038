// SPDX-License-Identifier: Apache-2.0
// Plans with names and with ids, their validation, and apply().
#include "model/placement_order.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/disturbance.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusched {

GPUSCHED_EXPORT bool PlanSpec::operator==(const PlanSpec& other) const {
    bool equal = true;
    visit_fields(std::type_identity<PlanSpec>{}, [&](const char*, auto member, const auto&...) {
        equal = equal && this->*member == other.*member;
    });
    return equal;
}

GPUSCHED_EXPORT const PlanSpec::Task* PlanSpec::find_task(std::string_view name) const noexcept {
    const auto found = std::lower_bound(tasks.begin(), tasks.end(), name,
                                        [](const Task& task, std::string_view of) { return task.name < of; });
    return found != tasks.end() && found->name == name ? &*found : nullptr;
}

GPUSCHED_EXPORT PlanSpec to_spec(const Plan& plan, const Cluster& cluster,
                                 std::map<std::string, double> stats) {
    PlanSpec spec;
    spec.stats = std::move(stats);
    spec.waves = plan.waves;
    spec.bound = plan.bound;
    spec.goal = plan.goal;
    spec.goal_reached = plan.goal_reached;
    spec.price = plan.price;
    for (const auto& m : plan.moves)
        spec.moves.push_back({cluster.name(m.task), cluster.name(m.from), cluster.name(m.to),
                              gpu_list(m.gpus), m.wave, m.how,
                              m.chain == Move::no_chain ? std::nullopt : std::optional<std::int64_t>(m.chain),
                              m.serves == none<NodeId> ? std::string() : cluster.name(m.serves)});
    for (const auto node : plan.vacated_nodes) spec.vacated_nodes.push_back(cluster.name(node));
    for (const auto node : plan.opened_nodes) spec.opened_nodes.push_back(cluster.name(node));
    for (const auto task : plan.evictions) spec.evictions.push_back(cluster.name(task));
    for (const auto& p : plan.placements)
        spec.placements.push_back({cluster.name(p.task), cluster.name(p.node), gpu_list(p.gpus)});
    describe_tasks(spec, cluster);
    return spec;
}

namespace detail {

// Converts names to ids. Reports unknown names and returns none for them.
struct PlanResolver {
    const Cluster& cluster;
    Problems problems;

    template <class Id>
    Id find(const std::string& owner, const char* kind, const std::string& name, const NameTable& names) {
        if (const auto found = names.find(name)) return make_id<Id>(*found);
        problems.add(owner + ": " + unknown_name(kind, name, names));
        return none<Id>;
    }
    TaskId task(const std::string& owner, const std::string& name) {
        return find<TaskId>(owner, "task", name, cluster.inventory().tasks.names);
    }
    NodeId node(const std::string& owner, const std::string& name) {
        return find<NodeId>(owner, "node", name, cluster.inventory().nodes.names);
    }
    GpuMask gpus(const std::string& owner, NodeId node, const std::vector<int>& list) {
        if (node == none<NodeId>) return 0;
        const int count = cluster.gpu_count(node) + gpu_count(cluster.devices(node));
        return gpu_mask(
            list, count,
            [&](int gpu) {
                problems.add(concat(owner, ": GPU ", gpu, " of node ", gpusched::quoted(cluster.name(node)),
                                    ", which has ", count));
            },
            [&](int gpu) { problems.add(concat(owner, ": GPU ", gpu, " is named twice")); });
    }
    std::uint32_t wave(const std::string& owner, const char* field, std::int64_t value) {
        return check_range(problems, field, value, 0, UINT32_MAX, owner) ? static_cast<std::uint32_t>(value)
                                                                         : 0;
    }
    std::uint32_t chain(const std::string& owner, std::int64_t value) {
        return check_range(problems, "chain", value, 0, Move::no_chain - 1, owner)
                   ? static_cast<std::uint32_t>(value)
                   : Move::no_chain;
    }
};

}  // namespace detail

GPUSCHED_EXPORT void validate(const Plan& plan, const Cluster& cluster) {
    Problems problems;
    const auto known = [&](const std::string& owner, const char* field, auto id, std::size_t slots) {
        if (cluster.contains(id)) return true;
        problems.add(bad_value(field, id == none<decltype(id)> ? "none" : std::to_string(index(id)),
                               index(id) < slots ? "an id that has not left the cluster"
                                                 : "an id below " + std::to_string(slots),
                               owner));
        return false;
    };
    const auto task = [&](const std::string& owner, TaskId id) {
        known(owner, "task", id, cluster.task_slots());
    };
    const auto destination = [&](const std::string& owner, const char* field, NodeId node, GpuMask gpus) {
        if (known(owner, field, node, cluster.node_slots()) &&
            (gpus & ~first_gpus(cluster.gpu_count(node)) & ~cluster.devices(node)) != 0)
            problems.add(concat(owner, ": names GPUs that node ", gpusched::quoted(cluster.name(node)),
                                " lacks; it has ", cluster.gpu_count(node)));
    };
    const auto nth = [](const char* what, std::size_t i) { return what + (" #" + std::to_string(i)); };
    for (std::size_t i = 0; i < plan.evictions.size() && !problems.full(); ++i)
        task(nth("eviction", i), plan.evictions[i]);
    for (std::size_t i = 0; i < plan.moves.size() && !problems.full(); ++i) {
        const auto& m = plan.moves[i];
        const auto owner = nth("move", i);
        task(owner, m.task);
        known(owner, "from", m.from, cluster.node_slots());
        destination(owner, "to", m.to, m.gpus);
        if (m.serves != none<NodeId>) known(owner, "serves", m.serves, cluster.node_slots());
        if (m.wave >= plan.waves || (i > 0 && m.wave < plan.moves[i - 1].wave))
            problems.add(bad_value("wave", std::to_string(m.wave),
                                   plan.waves == 0 ? std::string("no moves, because waves is 0")
                                                   : concat("ascending waves from 0 to ", plan.waves - 1),
                                   owner));
    }
    for (std::size_t i = 0; i < plan.placements.size() && !problems.full(); ++i) {
        const auto owner = nth("placement", i);
        task(owner, plan.placements[i].task);
        destination(owner, "node", plan.placements[i].node, plan.placements[i].gpus);
    }
    for (std::size_t i = 0; i < plan.vacated_nodes.size() && !problems.full(); ++i)
        known(nth("vacated_nodes", i), "node", plan.vacated_nodes[i], cluster.node_slots());
    for (std::size_t i = 0; i < plan.opened_nodes.size() && !problems.full(); ++i)
        known(nth("opened_nodes", i), "node", plan.opened_nodes[i], cluster.node_slots());
    problems.throw_if_any();
}

GPUSCHED_EXPORT Plan resolve(const PlanSpec& spec, const Cluster& cluster) {
    detail::PlanResolver get{cluster, Problems{}};
    Plan plan;
    plan.waves = get.wave("plan", "waves", spec.waves);
    plan.bound = spec.bound;
    plan.goal = spec.goal;
    plan.goal_reached = spec.goal_reached;
    plan.price = spec.price;
    for (const auto& task : spec.evictions)
        plan.evictions.push_back(get.task("eviction #" + std::to_string(plan.evictions.size()), task));
    for (const auto& m : spec.moves) {
        const auto owner = "move #" + std::to_string(plan.moves.size());
        Move move{get.task(owner, m.task), get.node(owner, m.from), get.node(owner, m.to)};
        move.gpus = get.gpus(owner, move.to, m.gpus);
        move.how = m.how;
        if (m.chain) move.chain = get.chain(owner, *m.chain);
        if (!m.serves.empty()) move.serves = get.node(owner, m.serves);
        move.wave = get.wave(owner, "wave", m.wave);
        plan.moves.push_back(move);
    }
    for (const auto& p : spec.placements) {
        const auto owner = "placement #" + std::to_string(plan.placements.size());
        Placement placement{get.task(owner, p.task), get.node(owner, p.node), 0};
        placement.gpus = get.gpus(owner, placement.node, p.gpus);
        plan.placements.push_back(placement);
    }
    for (const auto& node : spec.vacated_nodes) plan.vacated_nodes.push_back(get.node("vacated_nodes", node));
    for (const auto& node : spec.opened_nodes) plan.opened_nodes.push_back(get.node("opened_nodes", node));
    get.problems.throw_if_any();
    std::vector<Move> sorted;
    for (const auto i : order_by(plan.moves.size(), [&](std::size_t m) { return plan.moves[m].wave; }))
        sorted.push_back(plan.moves[i]);
    plan.moves = std::move(sorted);
    std::sort(plan.vacated_nodes.begin(), plan.vacated_nodes.end());
    std::sort(plan.opened_nodes.begin(), plan.opened_nodes.end());
    return plan;
}

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
        return concat("move of task ", gpusched::quoted(cluster.name(m.task)), " to node ",
                      gpusched::quoted(cluster.name(m.to)), " in wave ", m.wave + 1);
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
                refuse(text(cluster, m), "starts from node " + gpusched::quoted(cluster.name(m.from)) +
                                             ", but the task is not there");
            if (m.from == m.to) refuse(text(cluster, m), "leads to the node on which it is already");
            // `reserve` requires exactly this number.
            const auto devices =
                t.is(TaskTrait::extras, m.task) ? m.gpus & cluster.devices(m.to) : GpuMask{0};
            if (gpu_count(m.gpus & ~devices) != t.gpu_count[i])
                refuse(text(cluster, m), concat("names ", gpu_count(m.gpus & ~devices),
                                                gpu_count(m.gpus & ~devices) == 1 ? " GPU" : " GPUs",
                                                ", but the task takes ", t.gpu_count[i]));
        }
        std::sort(moving.begin(), moving.end());
        if (const auto twice = std::adjacent_find(moving.begin(), moving.end()); twice != moving.end())
            refuse("wave " + std::to_string(moves.front().wave + 1),
                   "moves task " + gpusched::quoted(cluster.name(*twice)) + " twice");
        for (const auto& m : moves)
            if (m.how == MoveMode::restart) cluster.remove(m.task);
        // All moves of a wave happen together, so each destination is checked with all others in place.
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

    /// @param last false = returns false if the placement may become possible later
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
