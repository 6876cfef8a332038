// SPDX-License-Identifier: Apache-2.0
// Consolidation as today's tools do it, with the library's data structures.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/consolidation/consolidation.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace baselines {

using namespace gpusched;
namespace con = gpusched::consolidation;

/// Direct placement only, one round.
inline con::Options direct(con::Options options) {
    options.search.depth = 1;
    options.search.rounds = 1;
    return options;
}

/// Empties nodes one by one, those with the fewest pods first. Each pod goes to the first node of its pool
/// with room.
using FirstFit = con::Policies<con::ByGpuModel, con::FewestPods, con::GroupOrder, con::EasierVictims,
                               con::AcceptAll, con::GpuWeight>;

/// Empties the least used nodes first. Each pod goes to the fullest node with room.
using HighestUtilisation = con::Policies<con::ByGpuModel, con::LowestUtilisation, con::TightestFit,
                                         con::EasierVictims, con::AcceptAll, con::GpuWeight>;

/// Evicts pods of sparsely used nodes in random order, as Kubernetes does, and places each on another random
/// node with room. It does not try to empty a node completely.
inline con::Result random_eviction(const Cluster& snapshot, std::uint64_t seed) {
    Rng rng(seed);
    const auto scope = con::make_scope(snapshot, {});
    Cluster cluster = snapshot;
    std::vector<TaskId> tasks;
    for (const auto task : snapshot.tasks())
        if (scope.movable[index(task)] && snapshot.occupants(snapshot.node_of(task)) <= 2)
            tasks.push_back(task);
    rng.shuffle(std::span(tasks));
    std::vector<con::Step> steps;
    for (const auto task : tasks)
        for (int attempt = 0; attempt < 200; ++attempt) {
            const auto node = make_id<NodeId>(static_cast<std::size_t>(rng.below(snapshot.node_count())));
            const auto from = cluster.node_of(task);
            if (node == from || cluster.occupants(node) == 0 ||
                find_obstacle(cluster, task, node) != Obstacle::none)
                continue;
            const auto gpus = allocation::pick_gpus(allocation::TightestGpu{}, cluster, task, node);
            cluster.assign(task, node, gpus);
            steps.push_back({task, from, node, gpus, static_cast<std::uint32_t>(steps.size())});
            break;
        }
    std::vector<std::uint8_t> closed(snapshot.node_slots());
    for (const auto node : snapshot.nodes()) closed[index(node)] = cluster.occupants(node) == 0;
    auto order = con::order_into_waves(snapshot, steps, closed);
    con::Result result;
    result.plan.waves = order.waves;
    result.plan.moves = std::move(order.moves);
    static_cast<con::PlanStatistics&>(result.stats) =
        con::plan_statistics(snapshot, order.after, result.plan);
    result.stats.dropped_chains = order.dropped_chains;
    result.plan.vacated_nodes = con::vacated_nodes(snapshot, order.after);
    return result;
}

}  // namespace baselines
