// SPDX-License-Identifier: Apache-2.0
// Demand: what a task would take from a node, whether or not it is in a cluster yet.
#pragma once

#include <gpusched/model/inventory.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace gpusched::detail {

struct Demand {
    const std::string& name;
    std::int64_t cpu_milli, memory_mib, gpu_share_milli, gpu_memory_mib;
    int gpu_count;
    bool standby, lp;
    const Extras& extras;

    Demand(const TaskSpec& t, const Extras& asked)
        : name(t.name), cpu_milli(t.cpu_milli), memory_mib(t.memory_mib), gpu_share_milli(t.gpu_share_milli),
          gpu_memory_mib(t.gpu_memory_mib),
          gpu_count(static_cast<int>(std::clamp<std::int64_t>(t.gpu_count, 0, max_gpus_per_node))),
          standby(t.standby), lp(t.priority_class == PriorityClass::lp), extras(asked) {}
    Demand(const Inventory& inventory, TaskId task) : Demand(inventory, inventory.tasks, index(task)) {}

  private:
    Demand(const Inventory& inventory, const TaskTable& t, std::size_t i)
        : name(t.names[i]), cpu_milli(t.cpu_milli[i]), memory_mib(t.memory_mib[i]),
          gpu_share_milli(t.gpu_share_milli[i]), gpu_memory_mib(t.gpu_memory_mib[i]),
          gpu_count(t.gpu_count[i]), standby(t.standby[i] != 0), lp(t.priority_class[i] == PriorityClass::lp),
          extras(inventory.extras[t.extras[i]]) {}
};

}  // namespace gpusched::detail
