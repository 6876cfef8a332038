// SPDX-License-Identifier: Apache-2.0
// Trace: tasks over time on an empty cluster, as recorded or generated; what replays read.
#pragma once

#include <gpusched/model/spec.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace gpusched {

/// One task of a trace. Its `TaskSpec` is pending.
struct TraceTask {
    TaskSpec task{};
    std::int64_t creation_time = 0;                ///< seconds
    std::optional<std::int64_t> deletion_time{};   ///< absent = runs on after the trace ends
    std::optional<std::int64_t> scheduled_time{};  ///< when the recorded scheduler placed it; absent = never
    bool operator==(const TraceTask&) const = default;
};

/// Nodes and the tasks that arrive on them, in the order of the source.
struct Trace {
    std::vector<NodeSpec> nodes{};
    std::vector<TraceTask> tasks{};
    bool operator==(const Trace&) const = default;
};

}  // namespace gpusched
