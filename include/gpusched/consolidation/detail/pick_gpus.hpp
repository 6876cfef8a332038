// Which GPUs of a node a moved task takes.
#pragma once

#include <gpusched/model/feasibility.hpp>

#include <optional>

namespace gpusched::consolidation::detail {

/// GPUs of `node` that `task` can take now, or nothing: for a fraction the GPU with the least left, for whole GPUs
/// the lowest ones inside the locality with the fewest candidates that a guarantee allows. Empty for tasks without GPUs.
[[nodiscard]] inline std::optional<GpuMask> pick_gpus(const Cluster& cluster, TaskId task,
                                                      NodeId node) noexcept {
    const int wanted = cluster.inventory().tasks.gpu_count[index(task)];
    if (wanted == 0) return GpuMask{0};
    auto candidates = candidate_gpus(cluster, task, node);
    if (gpu_count(candidates) < wanted) return std::nullopt;
    if (cluster.is_fraction(task)) {
        int best = -1, least = 0;
        for_each_gpu(candidates, [&](int g) {
            const int left = cluster.gpu_free_milli(node, g, cluster.may_borrow(task));
            if (best < 0 || left < least) best = g, least = left;
        });
        return gpu_bit(best);
    }
    const auto local = guaranteed_localities(cluster, task, node);
    if (local.unknown) return std::nullopt;
    if (!local.masks.empty()) {
        GpuMask tightest = 0;
        for (const auto mask : local.masks)
            if (const auto here = static_cast<GpuMask>(mask & candidates);
                gpu_count(here) >= wanted && (tightest == 0 || gpu_count(here) < gpu_count(tightest)))
                tightest = here;
        if (tightest == 0) return std::nullopt;
        candidates = tightest;
    }
    return lowest_gpus(candidates, wanted);
}

}  // namespace gpusched::consolidation::detail
