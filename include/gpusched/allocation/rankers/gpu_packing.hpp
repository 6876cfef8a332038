// SPDX-License-Identifier: Apache-2.0
// GPU packing: prefers shared GPUs to idle ones, used nodes to empty ones.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <algorithm>
#include <cstdint>

namespace gpusched::allocation {

/// Prefers GPUs that are shared already, then idle GPUs of a used node, then an empty node.
///
/// The scores of the published comparison (Weng et al., ATC '23). A fraction that fits a shared GPU scores
/// 100 minus a tenth of the percentage that is free on it. Otherwise a node with used GPUs scores 50 minus
/// the GPUs that the task takes, which is the same on all such nodes, and one without scores 33 minus its
/// GPUs. Tasks without GPUs score 0 everywhere.
struct GpuPacking {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        const auto& t = cluster.inventory().tasks;
        if (t.gpu_count[index(task)] == 0) return 0;
        const auto lent = cluster.lent_to(task);
        if (cluster.is_fraction(task)) {
            int tightest = whole_gpu_milli;
            for (int g = 0; g < cluster.gpu_count(node); ++g)
                if (const int free = cluster.gpu_free_milli(node, g, lent);
                    free >= t.gpu_share_milli[index(task)])
                    tightest = std::min(tightest, free);
            if (tightest < whole_gpu_milli) return 100 - tightest / 100;
        }
        const auto all = cluster.healthy_gpus(node);
        return cluster.idle_gpus(node, lent) == all ? 33 - gpu_count(all) : 50 - t.gpu_count[index(task)];
    }
};

}  // namespace gpusched::allocation
