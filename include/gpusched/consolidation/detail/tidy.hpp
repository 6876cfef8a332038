// Tidying: fewer nodes that are nearly full, for some more moves. Opt-in, see Policies::fill_gaps.
#pragma once

#include <gpusched/consolidation/detail/workspace.hpp>
#include <gpusched/core/budget.hpp>

#include <algorithm>
#include <tuple>

namespace gpusched::consolidation::detail {

/// Gathers fractions on fewer GPUs: least used first, a GPU is cleared if all that it holds fits on other partly used
/// ones.
template <class Policies>
void pack_fractions(Workspace& work, OpenMoves<Policies>& moves, Budget& budget,
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
            for (int tier = 0; tier < FreeIndex::tiers; ++tier)
                if (work.index.visit_partial(tier, share, [&](NodeId node) {
                        return node != gpu.node && moves.place(task, node);
                    }))
                    return true;
            return false;
        });
        if (all)
            found.push_back(moves.take(none<NodeId>, 0));
        else
            moves.undo_to(0);
    }
}

/// Fills nodes that are nearly full with tasks from others that are not: idle GPUs gather on fewer nodes. Tasks that
/// have moved already go first, since sending them elsewhere costs nothing.
template <class Policies>
void fill_gaps(Workspace& work, OpenMoves<Policies>& moves, Budget& budget, std::vector<Vacated>& found) {
    const auto& cluster = work.cluster;
    std::vector<std::pair<int, NodeId>> gaps;
    for (const auto node : work.index.receivers())
        if (const int idle = gpu_count(cluster.idle_gpus(node)); work.index.is_open(node) && idle > 0)
            gaps.emplace_back(idle, node);
    std::sort(gaps.begin(), gaps.end());
    const auto fill = [&](NodeId node, bool moved) {
        for (auto giver = gaps.rbegin(); giver != gaps.rend(); ++giver) {
            const auto idle = gpu_count(cluster.idle_gpus(node));
            const auto from = giver->second;
            if (idle == 0) return;
            if (from == node || cluster.occupants(from) < 2 || gpu_count(cluster.idle_gpus(from)) < idle)
                continue;
            for (const auto task : cluster.tasks_on(from)) {
                if (!work.scope.movable[index(task)] || (work.snapshot.node_of(task) != from) != moved)
                    continue;
                if (cluster.gpu_milli(task) != std::int64_t{idle} * whole_gpu_milli ||
                    !moves.place(task, node))
                    continue;
                found.push_back(moves.take(none<NodeId>, 0));
                return;
            }
        }
    };
    for (const bool moved : {true, false})
        for (const auto& [idle, node] : gaps) {
            if (budget.exhausted()) return;
            fill(node, moved);
        }
}

}  // namespace gpusched::consolidation::detail
