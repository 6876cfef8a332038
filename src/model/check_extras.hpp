// SPDX-License-Identifier: Apache-2.0
// Checks of named resources, devices beside whole GPUs and node affinity as written.
#pragma once

#include "model/node_match.hpp"
#include "model/owner.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/quantity.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpusched::detail {

inline void check_name(const Owner& owner, const char* what, const std::string& name, Problems& problems) {
    if (name.empty()) problems.add(owner + ": " + what + " has an empty name");
    if (name.find('\0') != std::string::npos)
        problems.add(bad_value(what, "text with a NUL character", "text without", owner.text()));
}

inline void check_resources(const Owner& owner, const Resources& resources, Problems& problems) {
    for (const auto& [name, amount] : resources) {
        check_name(owner, "resources", name, problems);
        if (amount < 0 || amount > largest_quantity)
            check_range(problems, "resource " + gpusched::quoted(name), amount, std::int64_t{0},
                        largest_quantity, owner.text());
    }
}

/// @return how many devices the node has in all, at most 64 unless there is a problem
inline int check_devices(const Owner& owner, const std::vector<DeviceSpec>& devices, int gpus,
                         Problems& problems) {
    std::int64_t all = gpus;
    for (const auto& group : devices) {
        check_name(owner, "devices", group.device_class, problems);
        const auto name = "devices of class " + gpusched::quoted(group.device_class);
        check_fields(problems, group, PartOwner(owner, "devices of class", group.device_class));
        all += std::clamp<std::int64_t>(group.count, 0, max_gpus_per_node + 1);
        if (!group.parents.empty() && static_cast<std::int64_t>(group.parents.size()) != group.count)
            problems.add(bad_value("parents of " + name, std::to_string(group.parents.size()) + " entries",
                                   "one for each of the " + std::to_string(group.count), owner.text()));
        for (const int parent : group.parents)
            if (parent >= 0 && parent < gpus)
                problems.add(owner + ": " + name + ": their card " + std::to_string(parent) +
                             " is one of its " + std::to_string(gpus) +
                             " whole GPUs; a card is whole or split");
    }
    if (all > max_gpus_per_node && !devices.empty())
        problems.add(owner + ": has " + std::to_string(all) + " GPUs and other devices; expected at most " +
                     std::to_string(max_gpus_per_node) + " (count more as a resource)");
    return static_cast<int>(std::min<std::int64_t>(all, max_gpus_per_node + 1));
}

inline void check_device_request(const Owner& owner, const TaskSpec& task, Problems& problems) {
    if (task.device_count > 0 && task.device_classes.empty())
        problems.add(owner + ": device_count is " + std::to_string(task.device_count) +
                     ", but device_classes names no class");
    if (task.device_count == 0 && !task.device_classes.empty())
        problems.add(owner + ": device_classes goes with a device_count of at least 1");
    for (std::size_t i = 0; i < task.device_classes.size(); ++i) {
        const auto& name = task.device_classes[i];
        check_name(owner, "device_classes", name, problems);
        if (std::find(task.device_classes.begin(),
                      task.device_classes.begin() + static_cast<std::ptrdiff_t>(i),
                      name) != task.device_classes.begin() + static_cast<std::ptrdiff_t>(i))
            problems.add(owner + ": device_classes names " + gpusched::quoted(name) + " twice");
    }
}

inline void check_match(const Owner& owner, const NodeMatch& match, Problems& problems) {
    const auto of = " of node_affinity key " + gpusched::quoted(match.key);
    if (match.key.empty()) problems.add(owner + ": node_affinity has an empty key");
    const auto values = match.values.size();
    switch (match.op) {
    case MatchOperator::in:
    case MatchOperator::not_in:
        if (values == 0) problems.add(bad_value("values" + of, "none", "at least one", owner.text()));
        break;
    case MatchOperator::exists:
    case MatchOperator::does_not_exist:
        if (values > 0)
            problems.add(bad_value("values" + of, std::to_string(values),
                                   "none with " + std::string(enum_name(match.op)), owner.text()));
        break;
    case MatchOperator::gt:
    case MatchOperator::lt:
        if (values != 1 || !label_integer(match.values.front()))
            problems.add(bad_value(
                "values" + of, values == 1 ? gpusched::quoted(match.values.front()) : std::to_string(values),
                "one integer with " + std::string(enum_name(match.op)), owner.text()));
        break;
    }
}

inline void check_node_affinity(const Owner& owner, const std::vector<NodeTerm>& affinity,
                                Problems& problems) {
    for (const auto& term : affinity) {
        for (const auto& match : term.match_expressions) check_match(owner, match, problems);
        for (const auto& match : term.match_fields) {
            check_match(owner, match, problems);
            if (match.key != "metadata.name" ||
                (match.op != MatchOperator::in && match.op != MatchOperator::not_in))
                problems.add(bad_value("match_fields of node_affinity",
                                       gpusched::quoted(match.key) + " " + std::string(enum_name(match.op)),
                                       "metadata.name with In or NotIn", owner.text()));
        }
    }
}

}  // namespace gpusched::detail
