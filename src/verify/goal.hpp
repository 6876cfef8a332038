// SPDX-License-Identifier: Apache-2.0
// How much of a goal is there, by the checker's own books.
#pragma once

#include "verify/books.hpp"
#include "verify/constraints.hpp"

#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpusched::verify::detail {

/// Whether a task may run on a node, whatever is free there.
[[nodiscard]] inline bool may_run(const TaskSpec& task, const NodeSpec& node) {
    const auto selected = [&](const auto& wanted) {
        const auto label = node.labels.find(wanted.first);
        return label != node.labels.end() && label->second == wanted.second;
    };
    return (task.gpu_models.empty() || std::find(task.gpu_models.begin(), task.gpu_models.end(),
                                                 node.gpu_model) != task.gpu_models.end()) &&
           std::all_of(task.node_selector.begin(), task.node_selector.end(), selected) &&
           affinity_holds(task.node_affinity, node) &&
           std::none_of(node.taints.begin(), node.taints.end(),
                        [&](const Taint& taint) { return keeps_away(taint, task.tolerations); });
}

/// Which machines count for a good goal, by their number.
[[nodiscard]] inline std::vector<bool> machines_that_count(const Books& books, const Goal& goal) {
    const bool any_gpus =
        std::any_of(books.machines.begin(), books.machines.end(), [](const Machine& machine) {
            return machine.spec->schedulable && machine.spec->gpu_count > 0;
        });
    const TaskSpec* user = nullptr;
    if (const auto found = books.pod_of.find(goal.usable_by); found != books.pod_of.end())
        user = books.pods[static_cast<std::size_t>(found->second)].spec;
    std::vector<bool> out;
    for (const auto& machine : books.machines) {
        const auto& node = *machine.spec;
        // A taint that another node of the model lacks keeps others away.
        const auto is_common = [&](const Taint& taint) {
            return taint.effect == "PreferNoSchedule" ||
                   std::all_of(books.machines.begin(), books.machines.end(), [&](const Machine& other) {
                       const auto& spec = *other.spec;
                       return !spec.schedulable || spec.gpu_model != node.gpu_model ||
                              std::find(spec.taints.begin(), spec.taints.end(), taint) != spec.taints.end();
                   });
        };
        const bool gpu_works = std::any_of(machine.cards.begin(), machine.cards.end(),
                                           [](const auto& card) { return !card.failed; });
        out.push_back(node.schedulable && (goal.gpu_model.empty() || node.gpu_model == goal.gpu_model) &&
                      (!goal.empty_nodes || !any_gpus || gpu_works) &&
                      (user != nullptr ? may_run(*user, node)
                                       : std::all_of(node.taints.begin(), node.taints.end(), is_common)));
    }
    return out;
}

/// What keeps a goal from meaning anything; empty for a good one.
[[nodiscard]] inline std::string bad_goal(const Books& books, const Goal& goal) {
    if (!goal.gpu_model.empty() &&
        std::none_of(books.machines.begin(), books.machines.end(),
                     [&](const auto& machine) { return machine.spec->gpu_model == goal.gpu_model; }))
        return "no node has GPU model " + gpusched::quoted(goal.gpu_model);
    if (!goal.usable_by.empty() && !books.pod_of.contains(goal.usable_by))
        return "there is no task " + gpusched::quoted(goal.usable_by);
    if (goal.empty_nodes.has_value() == goal.slots.has_value())
        return "it must ask for either empty_nodes or slots";
    if (goal.empty_nodes) {
        if (goal.count) return "count stands beside empty_nodes";
        return *goal.empty_nodes < 1 ? "empty_nodes is less than 1" : "";
    }
    const auto& s = *goal.slots;
    if (s.gpu_count < 0 || s.cpu_milli < 0 || s.memory_mib < 0) return "the slots ask for less than nothing";
    if (s.gpu_count == 0 && s.cpu_milli == 0 && s.memory_mib == 0) return "the slots ask for nothing";
    return goal.count.value_or(1) < 1 ? "count is less than 1" : "";
}

/// How many empty nodes, or slots, the books have for a good goal.
[[nodiscard]] inline std::int64_t available(const Books& books, const Goal& goal) {
    const auto unused = [](std::int64_t capacity, const InUse& use) {
        return std::max<std::int64_t>(0, capacity - std::max(use.consumed, use.claimed));
    };
    std::int64_t sum = 0;
    const auto counts = machines_that_count(books, goal);
    for (std::size_t m = 0; m < books.machines.size(); ++m) {
        if (!counts[m]) continue;
        const auto& machine = books.machines[m];
        const auto& spec = *machine.spec;
        if (goal.empty_nodes) {
            sum += machine.occupants == 0 ? 1 : 0;
            continue;
        }
        const auto& shape = *goal.slots;
        const auto idle = std::count_if(machine.cards.begin(), machine.cards.end(), [](const Card& card) {
            return !card.failed && card.milli.consumed == 0 && card.milli.claimed == 0;
        });
        std::int64_t slots = -1;  // nothing limits them yet
        const auto limit = [&](std::int64_t free, std::int64_t each) {
            if (each == 0) return;
            const auto fit = free / each;
            slots = slots < 0 ? fit : std::min(slots, fit);
        };
        limit(idle, shape.gpu_count);
        limit(unused(spec.cpu_milli, machine.cpu), shape.cpu_milli);
        limit(std::max<std::int64_t>(0, spec.memory_mib - machine.memory_mib), shape.memory_mib);
        sum += slots;
    }
    return sum;
}

}  // namespace gpusched::verify::detail
