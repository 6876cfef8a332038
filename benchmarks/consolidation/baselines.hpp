// SPDX-License-Identifier: Apache-2.0
// What today's tools do, on the library's own data structures.
#pragma once

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/consolidation/detail/pick_gpus.hpp>
#include <gpusched/consolidation/detail/scope.hpp>
#include <gpusched/fragmentation/occupancy.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace baselines {

using namespace gpusched;
namespace con = gpusched::consolidation;

/// Direct placement only, one round.
inline con::Options direct(con::Options options) {
    options.depth = 1;
    options.rounds = 1;
    return options;
}

/// Node by node, fewest pods first, each pod to the first node of its pool that has room.
using FirstFit = con::Policies<con::ByGpuModel, con::FewestPods, con::GroupOrder, con::EasierVictims,
                               con::AcceptAll, con::GpuWeight>;

/// Descheduling by utilisation: least used nodes first, pods to the fullest node that has room.
using HighestUtilisation = con::Policies<con::ByGpuModel, con::LowestUtilisation, con::TightestFit,
                                         con::EasierVictims, con::AcceptAll, con::GpuWeight>;

/// Eviction as in Kubernetes: pods of sparsely used nodes are evicted in random order and placed again on a random node
/// with room, their own excepted; nodes are not cleared as a whole. As many pods are moved as half the nodes in use.
inline con::Result random_eviction(const Cluster& snapshot, std::uint64_t seed) {
    Rng rng(seed);
    const auto scope = con::detail::make_scope(snapshot, {});
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
            const auto gpus = con::detail::pick_gpus(cluster, task, node);
            if (!gpus) continue;
            cluster.assign(task, node, *gpus);
            steps.push_back({task, from, node, *gpus, static_cast<std::uint32_t>(steps.size())});
            break;
        }
    std::vector<std::uint8_t> closed(snapshot.node_count());
    for (const auto node : snapshot.nodes()) closed[index(node)] = cluster.occupants(node) == 0;
    con::Result result;
    Cluster after = snapshot;
    auto order = con::order_into_waves(after, steps, closed);
    result.plan.moves = std::move(order.moves);
    result.plan.waves = order.waves;
    result.stats.moves = static_cast<std::int64_t>(result.plan.moves.size());
    result.stats.waves = order.waves;
    result.stats.dropped_chains = order.dropped_chains;
    for (const auto& move : result.plan.moves) result.stats.first_wave_moves += move.wave == 0;
    result.stats.not_fully_occupied_before = fragmentation::occupancy(snapshot).not_fully_occupied;
    result.stats.not_fully_occupied_after = fragmentation::occupancy(after).not_fully_occupied;
    for (const auto node : snapshot.nodes()) {
        if (snapshot.occupants(node) == 0 || after.occupants(node) > 0) continue;
        result.plan.vacated_nodes.push_back(node);
        ++result.stats.vacated_nodes;
        result.stats.vacated_gpus += gpu_count(snapshot.healthy_gpus(node));
    }
    return result;
}

}  // namespace baselines
