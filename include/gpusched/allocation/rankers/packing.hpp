// Packing: least idle GPU capacity first.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <cstdint>

namespace GPUSCHED_NAMESPACE::allocation {

/// ASI's first criterion: the node with the least idle GPU capacity, so that emptier nodes stay whole.
///
/// "Idle" is what the task itself could take: to LP tasks also what Standby tasks lend. O(GPUs of the node).
struct Packing {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        return -cluster.gpu_free_total_milli(node, cluster.lent_to(task));
    }
};

}  // namespace GPUSCHED_NAMESPACE::allocation
