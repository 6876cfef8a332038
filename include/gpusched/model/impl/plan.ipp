#pragma once

#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace gpusched {

GPUSCHED_INLINE PlanSpec to_spec(const Plan& plan, const Cluster& cluster) {
    const auto list = [](GpuMask mask) {
        std::vector<int> gpus;
        for_each_gpu(mask, [&](int g) { gpus.push_back(g); });
        return gpus;
    };
    PlanSpec spec;
    spec.waves = plan.waves;
    spec.bound = plan.bound;
    for (const auto& m : plan.moves)
        spec.moves.push_back(
            {cluster.name(m.task), cluster.name(m.from), cluster.name(m.to), list(m.gpus), m.wave});
    for (const auto node : plan.vacated_nodes) spec.vacated_nodes.push_back(cluster.name(node));
    for (const auto task : plan.evictions) spec.evictions.push_back(cluster.name(task));
    for (const auto& p : plan.placements)
        spec.placements.push_back({cluster.name(p.task), cluster.name(p.node), list(p.gpus)});
    return spec;
}

namespace detail {

// Turns names into ids; where that fails, notes the problem and gives none.
struct PlanResolver {
    const Cluster& cluster;
    Problems problems;

    TaskId task(const std::string& owner, const std::string& name) {
        if (const auto found = cluster.inventory().tasks.names.find(name)) return make_id<TaskId>(*found);
        problems.add(owner + ": unknown task " + gpusched::quoted(name));
        return none<TaskId>;
    }
    NodeId node(const std::string& owner, const std::string& name) {
        if (const auto found = cluster.inventory().nodes.names.find(name)) return make_id<NodeId>(*found);
        problems.add(owner + ": unknown node " + gpusched::quoted(name));
        return none<NodeId>;
    }
    GpuMask gpus(const std::string& owner, NodeId node, const std::vector<int>& list) {
        GpuMask mask = 0;
        if (node == none<NodeId>) return mask;
        for (const int gpu : list) {
            if (gpu < 0 || gpu >= cluster.gpu_count(node))
                problems.add(owner + ": GPU " + std::to_string(gpu) + " of node " +
                             gpusched::quoted(cluster.name(node)) + ", which has " +
                             std::to_string(cluster.gpu_count(node)));
            else if ((mask & gpu_bit(gpu)) != 0)
                problems.add(owner + ": GPU " + std::to_string(gpu) + " is named twice");
            else
                mask |= gpu_bit(gpu);
        }
        return mask;
    }
    std::uint32_t wave(const std::string& owner, const char* field, std::int64_t value) {
        if (value >= 0 && value <= std::int64_t{UINT32_MAX}) return static_cast<std::uint32_t>(value);
        problems.add(owner + field + " is " + std::to_string(value) + "; expected 0 to 4294967295");
        return 0;
    }
};

}  // namespace detail

GPUSCHED_INLINE Plan resolve(const PlanSpec& spec, const Cluster& cluster) {
    detail::PlanResolver get{cluster, Problems{}};
    Plan plan;
    plan.waves = get.wave("plan: ", "waves", spec.waves);
    plan.bound = spec.bound;
    for (const auto& task : spec.evictions)
        plan.evictions.push_back(get.task("eviction #" + std::to_string(plan.evictions.size()), task));
    for (const auto& m : spec.moves) {
        const auto owner = "move #" + std::to_string(plan.moves.size());
        Move move{get.task(owner, m.task), get.node(owner, m.from), get.node(owner, m.to), 0, 0};
        move.gpus = get.gpus(owner, move.to, m.gpus);
        move.wave = get.wave(owner + ": ", "wave", m.wave);
        plan.moves.push_back(move);
    }
    for (const auto& p : spec.placements) {
        const auto owner = "placement #" + std::to_string(plan.placements.size());
        Placement placement{get.task(owner, p.task), get.node(owner, p.node), 0};
        placement.gpus = get.gpus(owner, placement.node, p.gpus);
        plan.placements.push_back(placement);
    }
    for (const auto& node : spec.vacated_nodes) plan.vacated_nodes.push_back(get.node("vacated_nodes", node));
    get.problems.throw_if_any();
    std::vector<std::size_t> order(plan.moves.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::pair(plan.moves[a].wave, a) < std::pair(plan.moves[b].wave, b);
    });
    std::vector<Move> sorted;
    for (const auto i : order) sorted.push_back(plan.moves[i]);
    plan.moves = std::move(sorted);
    std::sort(plan.vacated_nodes.begin(), plan.vacated_nodes.end());
    return plan;
}

}  // namespace gpusched
