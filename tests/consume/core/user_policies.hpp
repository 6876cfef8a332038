// SPDX-License-Identifier: Apache-2.0
// One policy of each kind, the least that each concept asks for, as an outside user would write it.
#pragma once

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/model/feasibility.hpp>

#include <span>
#include <vector>

namespace user {

using namespace gpusched;
namespace con = gpusched::consolidation;

struct OneGroup {
    con::Partition operator()(const Cluster& cluster, std::size_t, Rng&) const {
        con::Partition partition(1);
        for (const auto node : cluster.nodes()) partition[0].push_back(node);
        return partition;
    }
};
struct FewestTasks {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const { return cluster.occupants(node); }
};
struct LastNodeFirst {
    template <class Offer>
    bool visit(const Cluster&, const con::FreeIndex& free, TaskId, Offer&& offer) const {
        const auto nodes = free.receivers();
        for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
            if (free.is_open(*node) && offer(*node)) return true;
        return false;
    }
    template <class Offer>
    bool visit_full(const Cluster& cluster, const con::FreeIndex& free, TaskId task, Offer&& offer) const {
        return visit(cluster, free, task, offer);
    }
};
struct AllLeave {
    bool operator()(const Cluster&, TaskId, NodeId, std::span<const con::Victim> movable,
                    std::vector<con::Victim>& victims) const {
        victims.assign(movable.begin(), movable.end());
        return true;
    }
};
struct AtMostTwoMoves {
    bool operator()(const con::ChainSet& chains) const { return chains.moves <= 2; }
};
struct Same {
    std::int64_t operator()(const Cluster&, NodeId) const { return 1; }
};
struct HighestGpus {
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const {
        auto gpus = candidate_gpus(cluster, task, node);
        while (gpu_count(gpus) > cluster.inventory().tasks.gpu_count[index(task)])
            gpus = static_cast<GpuMask>(gpus & (gpus - 1));
        return gpus;
    }
};

}  // namespace user
