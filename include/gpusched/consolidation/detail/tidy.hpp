// SPDX-License-Identifier: Apache-2.0
// Tidying: fewer nodes that are nearly full, see Switches::gather_fractions and fill_gaps.
#pragma once

#include <gpusched/consolidation/workspace.hpp>
#include <gpusched/core/budget.hpp>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace gpusched::consolidation::detail {

/// Gathers fractions on fewer GPUs: least used first, a GPU is cleared if all that it holds fits on other partly used
/// ones.
template <class Policies>
void gather_fractions(Workspace& work, OpenMoves<Policies>& moves, Budget& budget,
                      std::vector<Vacated>& found) {
    struct PartlyUsed {
        int used, gpu;
        NodeId node;
    };
    const auto& cluster = work.cluster;
    std::vector<PartlyUsed> gpus;
    for (const auto node : work.index.receivers())
        for (int g = 0; g < cluster.gpu_count(node); ++g)
            if (const int free = cluster.gpu_free_milli(node, g); free > 0 && free < whole_gpu_milli)
                gpus.push_back({whole_gpu_milli - free, g, node});
    std::sort(gpus.begin(), gpus.end(), [](const PartlyUsed& a, const PartlyUsed& b) {
        return std::tuple(a.used, a.node, a.gpu) < std::tuple(b.used, b.node, b.gpu);
    });
    for (const auto& gpu : gpus) {
        if (budget.exhausted()) return;
        std::vector<TaskId> tasks;
        bool movable = work.index.is_open(gpu.node);
        for (const auto task : cluster.tasks_on(gpu.node))
            if ((cluster.gpus_of(task) & gpu_bit(gpu.gpu)) != 0) {
                tasks.push_back(task);
                movable = movable && work.scope.movable[index(task)];
            }
        if (!movable || tasks.empty() || cluster.occupants(gpu.node) <= static_cast<int>(tasks.size()))
            continue;
        const bool all = std::all_of(tasks.begin(), tasks.end(), [&](TaskId task) {
            const auto share = cluster.inventory().tasks.gpu_share_milli[index(task)];
            return work.index.visit_partial(
                share, [&](NodeId node) { return node != gpu.node && moves.place(task, node); });
        });
        if (all)
            found.push_back(moves.close());
        else
            moves.drop();
    }
}

/// Fills nodes that are nearly full with tasks of others that are not, or leaves them as they are: idle GPUs gather on
/// fewer nodes. Tasks that have moved already cost nothing; of others, one may move for one node.
template <class Policies>
void fill_gaps(Workspace& work, OpenMoves<Policies>& moves, Budget& budget, std::vector<Vacated>& found) {
    const auto& cluster = work.cluster;
    const auto& t = cluster.inventory().tasks;
    const auto idle_on = [&](NodeId node) { return gpu_count(cluster.idle_gpus(node)); };
    std::vector<std::pair<int, NodeId>> gaps;
    for (const auto node : work.index.receivers())
        if (work.index.is_open(node) && idle_on(node) > 0) gaps.emplace_back(idle_on(node), node);
    std::sort(gaps.begin(), gaps.end());
    std::array<std::vector<TaskId>, max_gpus_per_node + 1> givable;  // by GPUs, from the emptiest node first
    for (auto giver = gaps.rbegin(); giver != gaps.rend(); ++giver)
        for (const auto task : cluster.tasks_on(giver->second))
            if (work.scope.movable[index(task)] && t.gpu_share_milli[index(task)] == whole_gpu_milli)
                givable[t.gpu_count[index(task)]].push_back(task);
    const auto fill = [&](NodeId node, bool only_moved) {
        int idle = idle_on(node);
        for (int size = idle; size > 0; size = std::min(size, idle)) {
            const auto& tasks = givable[static_cast<std::size_t>(size)];
            const bool placed = std::any_of(tasks.begin(), tasks.end(), [&](TaskId task) {
                const auto from = cluster.node_of(task);
                return from != node && idle_on(from) > 0 && cluster.occupants(from) > 1 &&
                       (!only_moved || work.snapshot.node_of(task) != from) && moves.place(task, node);
            });
            placed ? idle -= size : --size;
        }
        if (idle == 0 && moves.chains().moves <= 1)
            found.push_back(moves.close());
        else
            moves.drop();
    };
    for (const bool only_moved : {true, false})
        for (const auto& [idle, node] : gaps) {
            if (budget.exhausted()) return;
            if (idle_on(node) > 0) fill(node, only_moved);
        }
}

}  // namespace gpusched::consolidation::detail
