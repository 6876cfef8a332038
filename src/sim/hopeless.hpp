// SPDX-License-Identifier: Apache-2.0
// Hopeless: pods of the spot replay that fit on no node, so that similar pods need not be tried.
#pragma once

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <vector>

namespace gpusched::sim::detail {

/// Pods that fit on no node in one pass over the waiting jobs. The cluster only gets fuller during the pass,
/// so requests that are at least as large fail, too.
class Hopeless {
  public:
    explicit Hopeless(const Cluster& cluster) : tasks_(cluster.inventory().tasks) {
        // With groups and localities, a pod can fit although a smaller one does not.
        for (const auto& affinities : cluster.inventory().task_affinities)
            plain_.push_back(affinities == TaskAffinities{});
    }
    void clear() { pods_.clear(); }
    void add(TaskId pod) { pods_.push_back(pod); }
    [[nodiscard]] bool covers(TaskId pod) const {
        const auto p = index(pod);
        return std::any_of(pods_.begin(), pods_.end(), [&](TaskId failed) {
            const auto f = index(failed);
            // A fraction fits on every node that fits whole GPUs, but not the other way round.
            const bool as_many_gpus =
                tasks_.gpu_share_milli[f] < whole_gpu_milli
                    ? tasks_.gpu_count[p] >= 1 && tasks_.gpu_share_milli[p] >= tasks_.gpu_share_milli[f]
                    : tasks_.gpu_share_milli[p] == whole_gpu_milli &&
                          tasks_.gpu_count[p] >= tasks_.gpu_count[f];
            return as_many_gpus && tasks_.cpu_milli[p] >= tasks_.cpu_milli[f] &&
                   tasks_.memory_mib[p] >= tasks_.memory_mib[f] &&
                   tasks_.gpu_memory_mib[p] >= tasks_.gpu_memory_mib[f] &&
                   tasks_.priority_class[p] == tasks_.priority_class[f] &&
                   tasks_.requirement[p] == tasks_.requirement[f] &&
                   (tasks_.extras[f] == 0 || tasks_.extras[p] == tasks_.extras[f]) &&
                   plain_[tasks_.affinities[p]] && plain_[tasks_.affinities[f]];
        });
    }

  private:
    const TaskTable& tasks_;
    std::vector<bool> plain_;  // by index into task_affinities
    std::vector<TaskId> pods_;
};

}  // namespace gpusched::sim::detail
