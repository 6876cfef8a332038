// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_list.hpp>
#include <gpusched/core/nearest_names.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpusched {

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
    return spec;
}

namespace detail {

// Turns names into ids; where that fails, notes the problem and gives none.
struct PlanResolver {
    const Cluster& cluster;
    Problems problems;

    TaskId task(const std::string& owner, const std::string& name) {
        if (const auto found = cluster.inventory().tasks.names.find(name)) return make_id<TaskId>(*found);
        problems.add(owner + ": unknown task " + gpusched::quoted(name) +
                     did_you_mean(name, cluster.inventory().tasks.names));
        return none<TaskId>;
    }
    NodeId node(const std::string& owner, const std::string& name) {
        if (const auto found = cluster.inventory().nodes.names.find(name)) return make_id<NodeId>(*found);
        problems.add(owner + ": unknown node " + gpusched::quoted(name) +
                     did_you_mean(name, cluster.inventory().nodes.names));
        return none<NodeId>;
    }
    GpuMask gpus(const std::string& owner, NodeId node, const std::vector<int>& list) {
        if (node == none<NodeId>) return 0;
        const int count = cluster.gpu_count(node) + gpu_count(cluster.devices(node));
        return gpu_mask(
            list, count,
            [&](int gpu) {
                problems.add(owner + ": GPU " + std::to_string(gpu) + " of node " +
                             gpusched::quoted(cluster.name(node)) + ", which has " + std::to_string(count));
            },
            [&](int gpu) { problems.add(owner + ": GPU " + std::to_string(gpu) + " is named twice"); });
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
            problems.add(owner + ": names GPUs that node " + gpusched::quoted(cluster.name(node)) +
                         " lacks; it has " + std::to_string(cluster.gpu_count(node)));
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
                                   "ascending waves below " + std::to_string(plan.waves), owner));
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

}  // namespace gpusched
