// SPDX-License-Identifier: Apache-2.0
// Event: one committed change of a cluster.
#pragma once

#include <gpusched/core/ids.hpp>

#include <cstdint>

namespace gpusched {

/// What a committed change did.
enum class EventKind : std::uint8_t {
    node_added,
    node_updated,  ///< also a GPU that failed or was repaired, a cordon, a label
    node_removed,
    task_added,
    task_updated,
    task_removed,
    bound,       ///< a task runs on a node, or on other GPUs of it
    unbound,     ///< a task is pending
    reserved,    ///< room is held for a second copy of a task
    unreserved,  ///< such room was given back
    job_added,
    job_updated,
    job_removed,
    budgets,  ///< a disruption budget came, changed or left, or a task that one named left
    time,     ///< `Inventory::now`
};

/// One committed change: what happened, and to whom. It holds no data of the node or task: read these from the cluster, which may
/// have changed again since.
struct Event {
    std::uint64_t version = 0;  ///< 1 for the first event of a log, and one more for each
    EventKind kind = EventKind::time;
    NodeId from = none<NodeId>;  ///< of `bound`: where the task ran before; none = it was pending
    NodeHandle
        node{};  ///< the node; of a task the one that it runs on, or left; none = it was and is pending
    TaskHandle task{};
    JobHandle job{};  ///< of `job_*` only. Jobs that tasks alone name come and go with these, without events
    bool operator==(const Event&) const = default;
};

}  // namespace gpusched
