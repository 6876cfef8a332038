// SPDX-License-Identifier: Apache-2.0
// Checks of the cores that tasks list.
#pragma once

#include "model/owner.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::detail {

inline void check_core_list(const Owner& owner, std::vector<int> cores, Problems& problems) {
    std::sort(cores.begin(), cores.end());
    for (std::size_t i = 0; i < cores.size(); ++i) {
        if (cores[i] < 0) problems.add(owner + ": cores names core " + std::to_string(cores[i]));
        if (i > 0 && cores[i] == cores[i - 1])
            problems.add(owner + ": cores names core " + std::to_string(cores[i]) + " twice");
    }
}

/// Cores of `cpu_local` tasks, which stay where they are: they exist, and none is wholly used twice. Lists of other tasks
/// say where they once ran; a core that nobody uses wholly may be shared, and one that a Standby task lends.
inline void check_cores_in_use(const ClusterSpec& spec, const Inventory& inventory, Problems& problems) {
    std::map<std::pair<std::uint32_t, int>, std::vector<const TaskSpec*>> users;  // by node and core
    for (const auto& task : spec.tasks) {
        if (!task.cpu_local || !task.cores || task.cores->empty() || !task.node) continue;
        const auto node = inventory.nodes.names.find(*task.node);
        if (!node) continue;
        const Owner owner("task", task.name);
        const auto hardware = inventory.nodes.hardware[*node];
        if (hardware != NodeTable::no_hardware) {
            const auto cores = inventory.hardware[hardware].description.cores();
            for (const int core : *task.cores)
                if (core >= cores)
                    problems.add(owner + ": cores names core " + std::to_string(core) + "; node " +
                                 gpusched::quoted(*task.node) + " has " + std::to_string(cores));
        }
        auto distinct = *task.cores;
        std::sort(distinct.begin(), distinct.end());
        distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
        if (task.cpu_milli < 1000 * static_cast<std::int64_t>(distinct.size())) continue;
        for (const int core : distinct) users[{*node, core}].push_back(&task);
    }
    const auto lends = [](const TaskSpec& a, const TaskSpec& b) {
        return a.standby && b.priority_class == PriorityClass::lp;
    };
    for (const auto& [where, tasks] : users)
        for (std::size_t i = 1; i < tasks.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if (!lends(*tasks[i], *tasks[j]) && !lends(*tasks[j], *tasks[i]))
                    problems.add(problems.full()
                                     ? std::string()
                                     : "node " + gpusched::quoted(*tasks[i]->node) + ": core " +
                                           std::to_string(where.second) + " is used wholly by tasks " +
                                           gpusched::quoted(tasks[j]->name) + " and " +
                                           gpusched::quoted(tasks[i]->name));
}

}  // namespace gpusched::detail
