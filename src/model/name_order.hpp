// SPDX-License-Identifier: Apache-2.0
// Sorts the data of a snapshot by the natural order of names.
#pragma once

#include <gpusched/core/name_table.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/model/inventory.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gpusched::detail {

/// Returns whether the list is in the natural order of names.
template <class Named>
[[nodiscard]] bool is_in_name_order(const std::vector<Named>& list) {
    return std::is_sorted(list.begin(), list.end(),
                          [](const Named& a, const Named& b) { return comes_before(a.name, b.name); });
}

template <class Named>
[[nodiscard]] std::vector<Named> in_name_order(const std::vector<Named>& list) {
    std::vector<std::string_view> names;
    names.reserve(list.size());
    for (const auto& named : list) names.emplace_back(named.name);
    std::vector<Named> sorted;
    sorted.reserve(list.size());
    for (const auto at : natural_order(names)) sorted.push_back(list[at]);
    return sorted;
}

/// True if ids by name equal positions in the lists. Also true if a name is missing, because the message
/// about it contains the position.
[[nodiscard]] inline bool is_numbered_as_listed(const ClusterSpec& spec) {
    const auto nameless = [](const auto& list) {
        return std::any_of(list.begin(), list.end(), [](const auto& named) { return named.name.empty(); });
    };
    return (is_in_name_order(spec.nodes) && is_in_name_order(spec.tasks) && is_in_name_order(spec.jobs) &&
            is_in_name_order(spec.budgets)) ||
           nameless(spec.nodes) || nameless(spec.tasks) || nameless(spec.jobs) || nameless(spec.budgets);
}

/// Sorts all lists except the label levels, because their order is their numbering.
[[nodiscard]] inline ClusterSpec in_name_order(const ClusterSpec& spec) {
    return {.now = spec.now,
            .nodes = in_name_order(spec.nodes),
            .tasks = in_name_order(spec.tasks),
            .jobs = in_name_order(spec.jobs),
            .budgets = in_name_order(spec.budgets),
            .label_levels = spec.label_levels};
}

/// The ids of the listed objects in a snapshot of the data, in the order of the lists.
[[nodiscard]] inline ListedOrder listed_order(const ClusterSpec& spec, const Inventory& inventory) {
    const auto ids = [](const auto& list, const NameTable& names) {
        std::vector<std::uint32_t> found;
        found.reserve(list.size());
        for (const auto& named : list) found.push_back(*names.find(named.name));
        return found;
    };
    ListedOrder listed{ids(spec.nodes, inventory.nodes.names), ids(spec.tasks, inventory.tasks.names),
                       ids(spec.jobs, inventory.job_names), ids(spec.budgets, inventory.budget_names)};
    // Jobs that only tasks name come last, in the order of those tasks.
    std::vector<std::uint8_t> seen(inventory.job_names.size());
    for (const auto job : listed.jobs) seen[job] = 1;
    for (const auto task : listed.tasks)
        if (const auto job = inventory.tasks.job[task]; job != none<JobId> && seen[index(job)]++ == 0)
            listed.jobs.push_back(static_cast<std::uint32_t>(index(job)));
    return listed;
}

}  // namespace gpusched::detail
