// SPDX-License-Identifier: Apache-2.0
// Small clusters for the tests of preemption.
#pragma once

#include "support/policies.hpp"

#include <gpusched/preemption/preemption.hpp>

namespace testing_support {

inline gpusched::NodeSpec machine(const std::string& name, const std::string& preset = "rtx4090x8") {
    gpusched::NodeSpec node{
        .name = name, .gpu_model = "GPU", .gpu_count = 8, .hardware = gpusched::hardware_preset(preset)};
    node.cpu_milli = node.hardware->cores() * 1000;
    node.memory_mib = 1000;
    return node;
}

inline gpusched::TaskSpec running(const std::string& name, const std::string& node, std::vector<int> gpus,
                                  std::int64_t priority) {
    gpusched::TaskSpec task{.name = name};
    task.gpu_count = static_cast<std::int64_t>(gpus.size());
    task.cpu_milli = 8000 * task.gpu_count;
    task.priority = priority;
    task.priority_class = gpusched::PriorityClass::lp;
    task.preemptible = true;
    task.node = node;
    task.gpus = std::move(gpus);
    return task;
}

inline gpusched::TaskSpec pending(const std::string& name, std::int64_t gpus, std::int64_t priority) {
    gpusched::TaskSpec task{.name = name};
    task.gpu_count = gpus;
    task.cpu_milli = 8000 * gpus;
    task.priority = priority;
    task.priority_class = gpusched::PriorityClass::hp;
    return task;
}

}  // namespace testing_support
